//! What was logged, as tables.

use std::time::Duration;

use mete_base::size;
use mete_command::failure;
use mete_command::output::Output;
use mete_command::table::{
    Head, NOTHING, Table, count, grouped, list, milliseconds, number, percent, seconds, shorten,
};
use mete_sched::sources::{IPC, SERVICE_TIME};
use mete_sched::{Dealing, DomainReport, EventKind, EventReport, Phase};

use super::{Logged, Program, is_idle, ordered, service_ns};

/// The most letters of a domain's or an event's name in a table.
pub const NAME: usize = 20;
/// The head of the number of processes: it counts the processes at the end, not all that ever belonged to the
/// domain.
pub const PROCESSES: &str = "processes\nat end";
/// The title of the table of transactions.
pub const TRANSACTIONS: &str = "transactions, as drivers report them or as wake-ups show them";
/// The most pairs of domains that are shown; JSON has all of them.
const MOST_DEALINGS: usize = 12;
/// The most programs of the domain "other" that are named.
const MOST_PROGRAMS: usize = 5;
/// The most performance counters in one table.
const COUNTERS: usize = 4;
/// A shorter run does not tell what reading the logs costs.
const LONG_ENOUGH: Duration = Duration::from_millis(100);
/// The shortest interval that is proposed.
const SHORTEST: Duration = Duration::from_millis(1);

/// All results, at the end. `interval` is how often the logs were read.
pub fn whole(logged: &Logged, interval: Duration, output: &mut Output) -> anyhow::Result<()> {
    let processors = number(logged.report.processors.len() as u64, "processor");
    output.text(format!("logged for {} on {processors}\n", seconds(logged.to - logged.from)))?;
    print("", domains(logged), output)?;
    for line in [largest_in_other(logged), quiet(logged)].into_iter().filter(|line| !line.is_empty()) {
        output.text(line)?;
    }
    counters(logged).into_iter().try_for_each(|table| print("performance counters", table, output))?;
    print("who woke whom", wake_ups(logged), output)?;
    print("processors", processors_table(logged), output)?;
    print("events of programs with probes", events(logged), output)?;
    print("phases of programs with probes, in nanoseconds", phases(logged), output)?;
    print(TRANSACTIONS, transactions(logged), output)?;
    output.text(completeness(logged, interval))
}

/// The results of one interval of several.
pub fn part(logged: &Logged, output: &mut Output) -> anyhow::Result<()> {
    let title = format!("{} to {}", seconds(logged.from), seconds(logged.to));
    print(&title, domains(logged), output)?;
    print("events of programs with probes", events(logged), output)?;
    print("phases of programs with probes, in nanoseconds", phases(logged), output)?;
    output.text(format!("{}\n", logged.report.completeness))
}

/// Prints a table under its title, unless it is empty.
pub fn print(title: &str, table: Table, output: &mut Output) -> anyhow::Result<()> {
    if table.is_empty() {
        return Ok(());
    }
    if !title.is_empty() {
        output.text(title)?;
    }
    output.text(format!("{}\n", table.text()))
}

fn domains(logged: &Logged) -> Table {
    let mut heads = vec![Head::Name("domain"), Head::Number(PROCESSES)];
    heads.extend(["ran (ms)", "%", "sent", "received", "memory\nat end"].map(Head::Number));
    let mut table = Table::new(heads);
    let domains: Vec<_> = ordered(logged).into_iter().filter(|domain| !is_quiet(domain)).collect();
    // If the kernel is not logged, there are no figures, and the table stays empty.
    if domains.iter().any(|domain| has_figures(domain)) {
        domains.iter().for_each(|domain| table.row(domain_row(logged, domain)));
    }
    table
}

fn has_figures(domain: &DomainReport) -> bool {
    service_ns(domain) > 0
        || !domain.sent.is_empty()
        || !domain.received.is_empty()
        || domain.memory_bytes.is_some_and(|memory| memory > 0)
}

fn domain_row(logged: &Logged, domain: &DomainReport) -> [String; 7] {
    let sum = |dealings: &[Dealing]| {
        let sum = dealings.iter().map(|dealing| dealing.count).sum();
        if sum > 0 { bound(logged, IPC, count(sum)) } else { count(sum) }
    };
    [
        shorten(&domain.name, NAME),
        count(domain.processes as u64),
        ran(logged, domain, milliseconds(service_ns(domain))),
        ran(logged, domain, percent(logged.share(domain))),
        sum(&domain.sent),
        sum(&domain.received),
        memory(logged, domain),
    ]
}

/// An unknown amount is shown as `?`, never as zero.
fn memory(logged: &Logged, domain: &DomainReport) -> String {
    match domain.memory_bytes {
        Some(memory) if memory > 0 => size::binary(memory),
        None if domain.processes > 0 && logs_memory(logged) => "?".into(),
        _ => "·".into(),
    }
}

fn logs_memory(logged: &Logged) -> bool {
    logged.report.domains.iter().any(|domain| domain.memory_bytes.is_some())
}

/// The processor time of a domain in any unit, marked as a lower bound if rows were lost.
pub fn ran(logged: &Logged, domain: &DomainReport, time: String) -> String {
    if service_ns(domain) > 0 { bound(logged, SERVICE_TIME, time) } else { time }
}

/// Whether nothing was logged in a domain.
fn is_quiet(domain: &DomainReport) -> bool {
    service_ns(domain) == 0
        && domain.sent.is_empty()
        && domain.received.is_empty()
        && domain.events.is_empty()
}

/// The largest programs in the domain "other", which could be domains of their own.
fn largest_in_other(logged: &Logged) -> String {
    if !logged.has_kernel() {
        return String::new();
    }
    let names = logged.within_other.iter().take(MOST_PROGRAMS).map(|Program { name, ran_ns }| {
        format!("{} {} %", shorten(name, NAME), percent(logged.share_of(*ran_ns)))
    });
    list_if_any("largest in other:", names)
}

/// A list and a line end, or nothing without names.
fn list_if_any(title: &str, names: impl Iterator<Item = String>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { String::new() } else { list(title, &names) + "\n" }
}

/// The domains in which nothing was logged.
fn quiet(logged: &Logged) -> String {
    // If the kernel is not logged, this holds for every program without probes, and is no news.
    if !logged.has_kernel() {
        return String::new();
    }
    let quiet = ordered(logged).into_iter().filter(|domain| is_quiet(domain) && !is_idle(domain));
    list_if_any("nothing was logged in:", quiet.map(|domain| shorten(&domain.name, NAME)))
}

/// Tables of performance counters, a few counters in each so that it fits.
fn counters(logged: &Logged) -> Vec<Table> {
    let names = names_of_counters(logged);
    let tables = names.chunks(COUNTERS).map(|names| {
        let mut table = Table::of_numbers("domain", names.iter().map(String::as_str));
        for domain in ordered(logged) {
            let values: Vec<_> = names.iter().map(|name| counter(domain, name)).collect();
            if values.iter().any(|&value| value > 0) {
                let cells = names.iter().zip(values).map(|(name, value)| bound(logged, name, count(value)));
                table.row([shorten(&domain.name, NAME)].into_iter().chain(cells));
            }
        }
        table
    });
    tables.collect()
}

fn names_of_counters(logged: &Logged) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for event in logged.report.domains.iter().flat_map(|domain| &domain.events) {
        if event.kind == EventKind::Counter && !names.contains(&event.name) {
            names.push(event.name.clone());
        }
    }
    names.sort();
    names
}

fn counter(domain: &DomainReport, name: &str) -> u64 {
    let found = domain.events.iter().find(|event| event.kind == EventKind::Counter && event.name == name);
    found.map_or(0, |event| event.sum)
}

fn wake_ups(logged: &Logged) -> Table {
    let mut table = Table::new([
        Head::Name("domain"),
        Head::Name("woke"),
        Head::Number("times"),
        Head::Number("per second"),
    ]);
    let mut all: Vec<_> = logged.report.domains.iter().flat_map(|domain| &domain.sent).collect();
    all.sort_by_key(|dealing| std::cmp::Reverse(dealing.count));
    for dealing in all.iter().take(MOST_DEALINGS) {
        let names = [&dealing.domain, &dealing.correspondent].map(|name| shorten(name, NAME));
        table.row(names.into_iter().chain(times(logged, is_cut(logged, IPC), dealing.count)));
    }
    if all.len() > MOST_DEALINGS {
        let rest = &all[MOST_DEALINGS..];
        let sum = rest.iter().map(|dealing| dealing.count).sum();
        let names = [number(rest.len() as u64, "more pair"), String::new()];
        table.row(names.into_iter().chain(times(logged, is_cut(logged, IPC), sum)));
    }
    table
}

/// How often, and how often a second.
fn times(logged: &Logged, is_cut: bool, number: u64) -> [String; 2] {
    [grouped(number), rate(number, logged)].map(|text| at_least(is_cut, text))
}

fn rate(number: u64, logged: &Logged) -> String {
    // The bound keeps an interval of no length from dividing by zero.
    let rate = number as f64 / logged.seconds().max(1e-9);
    // From 9.95 on, one digit after the point would round up to 10.0: then whole numbers are enough.
    if rate < 9.95 { format!("{rate:.1}") } else { grouped(rate.round() as u64) }
}

/// A number from the rows of a log file, marked as a lower bound if rows of this file were lost.
fn bound(logged: &Logged, file: &str, number: String) -> String {
    at_least(is_cut(logged, file), number)
}

/// Marks a number as a lower bound if rows are missing.
fn at_least(is_cut: bool, number: String) -> String {
    if is_cut { format!("≥{number}") } else { number }
}

/// Whether rows of a log file are missing, on any processor.
fn is_cut(logged: &Logged, file: &str) -> bool {
    logged.report.completeness.files.iter().any(|count| count.file == file && !count.is_complete())
}

fn processors_table(logged: &Logged) -> Table {
    let mut table = Table::new([
        Head::Number("processor"),
        Head::Number("busy (%)"),
        Head::Number("run queue"),
        Head::Text("mostly"),
    ]);
    for (processor, queue) in logged.queues.iter().enumerate() {
        // Missing rows may have been idle time or not, so the share is not known then.
        let busy = logged.busy(processor).filter(|_| !is_cut(logged, SERVICE_TIME));
        // A machine may have numbers for processors that it does not have.
        if logged.busy(processor).is_some() || queue.is_some() {
            let busy = busy.map_or("·".into(), percent);
            let queue = queue.map_or("·".into(), |length| format!("{length:.2}"));
            table.row([processor.to_string(), busy, queue, mostly(logged, processor)]);
        }
    }
    table
}

/// The three domains that used a processor most.
fn mostly(logged: &Logged, processor: usize) -> String {
    let domains = logged.report.domains.iter().filter(|domain| !is_idle(domain));
    let used = domains.map(|domain| (domain.service_ns.get(processor).copied().unwrap_or(0), domain));
    let mut users: Vec<_> = used.filter(|(used_ns, _)| *used_ns > 0).collect();
    users.sort_by_key(|(used_ns, _)| std::cmp::Reverse(*used_ns));
    let shares = users.into_iter().take(3).map(|(used_ns, domain)| {
        let share = used_ns as f64 / 1e9 / logged.seconds().max(1e-9);
        format!("{} {} %", shorten(&domain.name, NAME), bound(logged, SERVICE_TIME, percent(share)))
    });
    shares.collect::<Vec<_>>().join(", ")
}

fn events(logged: &Logged) -> Table {
    let mut heads = vec![Head::Name("event"), Head::Name("kind"), Head::Name("domain")];
    heads.extend(["rows", "per second", "sum", "last"].map(Head::Number));
    let mut table = Table::new(heads.into_iter().chain([Head::Name("unit")]));
    for domain in ordered(logged) {
        for event in
            domain.events.iter().filter(|event| !matches!(event.kind, EventKind::Counter | EventKind::Phase))
        {
            table.row(event_row(logged, domain, event));
        }
    }
    table
}

fn event_row(logged: &Logged, domain: &DomainReport, event: &EventReport) -> [String; 8] {
    let [rows, per_second] = times(logged, is_cut(logged, &event.name), event.rows);
    [
        shorten(&event.name, NAME),
        event.kind.to_string(),
        shorten(&domain.name, NAME),
        rows,
        per_second,
        bound(logged, &event.name, grouped(event.sum)),
        grouped(event.last),
        unit(event).into(),
    ]
}

fn phases(logged: &Logged) -> Table {
    let heads = vec![Head::Name("phase"), Head::Name("domain")].into_iter();
    let figures = ["times", "per second", "mean", "median", "99 %", "last"].map(Head::Number);
    let mut table = Table::new(heads.chain(figures));
    for domain in ordered(logged) {
        for event in &domain.events {
            if let Some(phase) = &event.phase {
                table.row(phase_row(logged, domain, event, phase));
            }
        }
    }
    table
}

fn phase_row(logged: &Logged, domain: &DomainReport, event: &EventReport, phase: &Phase) -> [String; 8] {
    let [count, per_second] = times(logged, is_cut(logged, &event.name), event.count());
    let ns = |ns: Option<f64>| ns.map_or_else(|| "?".into(), |ns| grouped(ns.round() as u64));
    [
        shorten(&event.name, NAME),
        shorten(&domain.name, NAME),
        count,
        per_second,
        ns(event.mean_ns()),
        ns(phase.quantile_ns(0.5)),
        ns(phase.quantile_ns(0.99)),
        ns(phase.ns(event.last as f64)),
    ]
}

/// The unit of an event's values. Accesses are counted; only the program knows the unit of a sample.
fn unit(event: &EventReport) -> &'static str {
    match event.kind {
        EventKind::Access => "times",
        EventKind::Counter | EventKind::Phase | EventKind::Sample => NOTHING,
    }
}

/// The matrix of transactions between clients and drivers, without its zeroes.
pub fn transactions(logged: &Logged) -> Table {
    let heads =
        [Head::Name("client"), Head::Name("driver"), Head::Number("times"), Head::Number("per second")];
    let mut table = Table::new(heads);
    for dealing in &logged.report.transactions {
        let names = [&dealing.domain, &dealing.correspondent].map(|name| shorten(name, NAME));
        let is_cut = files_of_driver(logged, &dealing.correspondent).any(|file| is_cut(logged, file));
        table.row(names.into_iter().chain(times(logged, is_cut, dealing.count)));
    }
    table
}

/// The log files from which a driver's transactions are known: its own events, or wake-ups.
fn files_of_driver<'a>(logged: &'a Logged, driver: &'a str) -> impl Iterator<Item = &'a str> {
    let drivers = logged.report.domains.iter().filter(move |domain| domain.name == driver);
    let accesses = drivers.flat_map(|domain| &domain.events).filter(|event| event.kind == EventKind::Access);
    accesses.map(|event| event.name.as_str()).chain([IPC])
}

/// What was lost, and what reading the logs cost.
pub fn completeness(logged: &Logged, interval: Duration) -> String {
    let statement = logged.report.completeness.to_string();
    [Some(statement), hint(logged, interval), cost(logged)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("\n")
}

/// Says on the last line what was lost, if anything was; returns whether nothing was.
pub fn tell_loss(logged: &Logged) -> bool {
    let completeness = &logged.report.completeness;
    if !completeness.is_complete() {
        let statement = completeness.to_string();
        let first = statement.lines().next().unwrap_or_default();
        failure::say(&format!("{first}: the results above are less than what happened"));
    }
    completeness.is_complete()
}

/// What to do if rows were overwritten.
fn hint(logged: &Logged, interval: Duration) -> Option<String> {
    let is_too_fast = logged.report.completeness.files.iter().any(|file| file.overwritten > 0);
    let shorter = (interval / 4).max(SHORTEST);
    let helps = shorter < interval && is_too_fast;
    helps.then(|| {
        format!("rows were logged faster than they were read: --interval {shorter:?} reads more often")
    })
}

fn cost(logged: &Logged) -> Option<String> {
    let cost = logged.report.cost;
    let share = cost.used_ns as f64 / cost.passed_ns.max(1) as f64;
    let is_long = logged.to - logged.from >= LONG_ENOUGH;
    is_long.then(|| format!("reading the logs took {} % of one processor", percent(share)))
}

#[cfg(test)]
mod tests {
    use mete_policy::Role;
    use mete_sched::analysis::{Completeness, FileCount, Lengths};
    use mete_sched::{Report, SchedulerCost};

    use super::*;

    /// 1,000 requests of a client to a driver in a second, without the kernel; `overwritten` rows were lost.
    fn logged(overwritten: u64) -> Logged {
        let request = EventReport {
            name: "request".into(),
            kind: EventKind::Access,
            rows: 1000,
            sum: 1000,
            last: 1,
            phase: None,
        };
        let domain = |name: &str, role, events| DomainReport {
            name: name.into(),
            built_in: None,
            role,
            processes: 1,
            service_ns: vec![0, 0],
            demand: mete_policy::Permille::ZERO,
            last_processor: None,
            processor: None,
            placed: None,
            sent: vec![],
            received: vec![],
            memory_bytes: None,
            events,
        };
        let file = FileCount {
            source: "db (7)".into(),
            file: "request".into(),
            rows: 1000,
            overwritten,
            ..FileCount::default()
        };
        let report = Report {
            domains: vec![domain("web", Role::Client, vec![]), domain("db", Role::Driver, vec![request])],
            processors: vec![],
            transactions: vec![Dealing { domain: "web".into(), correspondent: "db".into(), count: 1000 }],
            working_sets: vec![],
            sources: vec!["db (7)".into()],
            completeness: Completeness { from_ns: 0, to_ns: 0, files: vec![file], missed: None },
            cost: SchedulerCost::default(),
        };
        Logged {
            from: Duration::ZERO,
            to: Duration::from_secs(1),
            report,
            queues: vec![],
            within_other: vec![],
            not_logged: vec![],
        }
    }

    const INTERVAL: Duration = Duration::from_millis(20);

    #[test]
    fn where_rows_were_lost_numbers_are_lower_bounds_and_it_is_said_what_helps() {
        let logged = logged(5);
        // Rows, rate and sum; times and rate.
        assert_eq!(events(&logged).text().matches("≥1,000").count(), 3);
        assert_eq!(transactions(&logged).text().matches("≥1,000").count(), 2);
        assert!(completeness(&logged, INTERVAL).contains("--interval 5ms reads more often"));
        assert!(!completeness(&logged, SHORTEST).contains("--interval"), "nothing shorter helps");
    }

    #[test]
    fn log_13_memory_that_is_not_known_is_no_zero() {
        let mut logged = logged(0);
        logged.report.domains[0].memory_bytes = Some(5 << 20);
        let shown =
            |logged: &Logged| logged.report.domains.iter().map(|d| memory(logged, d)).collect::<Vec<_>>();
        assert_eq!(shown(&logged), ["5120 KiB", "?"]);
        logged.report.domains[1].processes = 0;
        assert_eq!(shown(&logged), ["5120 KiB", "·"], "a domain without processes has no memory");
    }

    #[test]
    fn where_every_row_was_read_numbers_are_what_they_are() {
        let logged = logged(0);
        assert!(!events(&logged).text().contains('≥') && !transactions(&logged).text().contains('≥'));
        assert!(!completeness(&logged, INTERVAL).contains("--interval"));
    }

    #[test]
    fn without_the_kernel_there_is_no_table_of_what_it_alone_tells() {
        let logged = logged(0);
        assert!(domains(&logged).is_empty() && quiet(&logged).is_empty());
    }

    #[test]
    fn what_stands_as_at_the_end_says_so_and_values_have_their_unit() {
        let mut logged = logged(0);
        logged.report.sources = vec!["kernel".into()];
        logged.report.domains[0].service_ns = vec![5_000_000, 0];
        let text = domains(&logged).text();
        assert_eq!(text.matches("at end").count(), 2, "{text}");
        let text = events(&logged).text();
        assert!(text.contains("unit") && text.contains("1   times"), "{text}");
        let request = &mut logged.report.domains[1].events[0];
        (request.kind, request.sum, request.last) = (EventKind::Phase, 3_000_000, 2_000);
        request.phase = Some(Phase { lengths: Lengths::default(), ns_per_tick: Some(0.5) });
        assert!(events(&logged).is_empty());
        let text = phases(&logged).text();
        assert!(text.contains("?") && text.contains("1,000"), "{text}");
    }

    #[test]
    fn log_13_the_largest_programs_in_no_domain_are_named() {
        let mut logged = logged(0);
        logged.within_other = (1..=6)
            .rev()
            .map(|part| Program { name: format!("p{part}"), ran_ns: part * 100_000_000 })
            .collect();
        assert_eq!(largest_in_other(&logged), "", "without the kernel there is no such domain");
        logged.report.sources = vec!["kernel".into()];
        assert_eq!(
            largest_in_other(&logged),
            "largest in other: p6 60.0 %, p5 50.0 %, p4 40.0 %, p3 30.0 %, p2 20.0 %\n"
        );
    }

    #[test]
    fn a_moment_tells_nothing_of_what_reading_costs() {
        let mut logged = logged(0);
        assert!(completeness(&logged, INTERVAL).contains("of one processor"));
        logged.to = Duration::from_millis(3);
        assert!(!completeness(&logged, INTERVAL).contains("of one processor"));
    }
}
