//! What was logged, as tables.

use mete_sched::{Dealing, DomainReport, EventReport};

use super::{Logged, is_idle, json, service_ns};
use crate::output::Output;
use crate::table::{Head, Table, bytes, count, grouped, milliseconds, number, percent, shorten};

/// Letters of a domain's or an event's name in a table.
pub const NAME: usize = 20;
/// Dealings that are shown; JSON has them all.
const MOST_DEALINGS: usize = 12;
/// Performance counters in one table.
const COUNTERS: usize = 4;

/// Everything, at the end.
pub fn whole(logged: &Logged, output: &mut Output) -> anyhow::Result<()> {
    if output.is_json() {
        return json::print("whole", logged, output);
    }
    let processors = number(logged.report.processors.len() as u64, "processor");
    output.text(format!("logged for {:.2} s on {processors}\n", logged.seconds()))?;
    print("", domains(logged), output)?;
    let quiet = quiet(logged);
    if !quiet.is_empty() {
        output.text(quiet)?;
    }
    counters(logged).into_iter().try_for_each(|table| print("performance counters", table, output))?;
    print("who woke whom", wake_ups(logged), output)?;
    print("processors", processors_table(logged), output)?;
    print("events of programs with probes", events(logged), output)?;
    print("transactions, as drivers report them or as wake-ups tell", transactions(logged), output)?;
    output.text(completeness(logged))
}

/// One interval of several.
pub fn part(logged: &Logged, output: &mut Output) -> anyhow::Result<()> {
    if output.is_json() {
        return json::print("interval", logged, output);
    }
    let title = format!("{:.2} s to {:.2} s", logged.from.as_secs_f64(), logged.to.as_secs_f64());
    print(&title, domains(logged), output)?;
    print("events of programs with probes", events(logged), output)?;
    output.text(format!("{}\n", logged.report.completeness))
}

/// A table under its title, unless it is empty.
pub fn print(title: &str, table: Table, output: &mut Output) -> anyhow::Result<()> {
    if table.is_empty() {
        return Ok(());
    }
    if !title.is_empty() {
        output.text(title)?;
    }
    output.text(format!("{}\n", table.text()))
}

/// Busiest first; the built-in ones last.
pub fn ordered(logged: &Logged) -> Vec<&DomainReport> {
    let mut domains: Vec<_> = logged.report.domains.iter().collect();
    let rank = |domain: &DomainReport| ["other", "idle"].iter().position(|name| domain.name == *name);
    domains.sort_by_key(|domain| (rank(domain), std::cmp::Reverse(service_ns(domain))));
    domains
}

fn domains(logged: &Logged) -> Table {
    let mut heads = vec![Head::Name("domain"), Head::Number("processes")];
    heads.extend(["ran (ms)", "%", "sent", "received", "memory"].map(Head::Number));
    let mut table = Table::new(heads);
    for domain in ordered(logged).into_iter().filter(|domain| !is_quiet(domain)) {
        table.row(domain_row(logged, domain));
    }
    table
}

fn domain_row(logged: &Logged, domain: &DomainReport) -> [String; 7] {
    let sum = |dealings: &[Dealing]| dealings.iter().map(|dealing| dealing.count).sum();
    [
        shorten(&domain.name, NAME),
        count(domain.processes as u64),
        milliseconds(service_ns(domain)),
        percent(logged.share(domain)),
        count(sum(&domain.sent)),
        count(sum(&domain.received)),
        domain.memory_bytes.filter(|&memory| memory > 0).map_or("·".into(), bytes),
    ]
}

/// Nothing was logged in it.
fn is_quiet(domain: &DomainReport) -> bool {
    service_ns(domain) == 0
        && domain.sent.is_empty()
        && domain.received.is_empty()
        && domain.events.is_empty()
}

fn quiet(logged: &Logged) -> String {
    let quiet = ordered(logged).into_iter().filter(|domain| is_quiet(domain) && !is_idle(domain));
    let names: Vec<_> = quiet.map(|domain| shorten(&domain.name, NAME)).collect();
    if names.is_empty() { String::new() } else { format!("nothing was logged in: {}\n", names.join(", ")) }
}

/// Performance counters, a few to a table so that it fits.
fn counters(logged: &Logged) -> Vec<Table> {
    let names = names_of_counters(logged);
    let tables = names.chunks(COUNTERS).map(|names| {
        let heads = names.iter().map(|name| Head::Number(name));
        let mut table = Table::new([Head::Name("domain")].into_iter().chain(heads));
        for domain in ordered(logged) {
            let values: Vec<_> = names.iter().map(|name| counter(domain, name)).collect();
            if values.iter().any(|&value| value > 0) {
                table.row([shorten(&domain.name, NAME)].into_iter().chain(values.into_iter().map(count)));
            }
        }
        table
    });
    tables.collect()
}

fn names_of_counters(logged: &Logged) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for event in logged.report.domains.iter().flat_map(|domain| &domain.events) {
        if event.kind == "counter" && !names.contains(&event.name) {
            names.push(event.name.clone());
        }
    }
    names.sort();
    names
}

fn counter(domain: &DomainReport, name: &str) -> u64 {
    let found = domain.events.iter().find(|event| event.kind == "counter" && event.name == name);
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
        table.row(names.into_iter().chain([grouped(dealing.count), rate(dealing.count, logged)]));
    }
    if all.len() > MOST_DEALINGS {
        let rest = &all[MOST_DEALINGS..];
        let times = rest.iter().map(|dealing| dealing.count).sum();
        table.row([format!("{} more pairs", rest.len()), String::new(), grouped(times), rate(times, logged)]);
    }
    table
}

fn rate(number: u64, logged: &Logged) -> String {
    let rate = number as f64 / logged.seconds().max(1e-9);
    if rate < 10.0 { format!("{rate:.1}") } else { grouped(rate as u64) }
}

fn processors_table(logged: &Logged) -> Table {
    let mut table = Table::new([
        Head::Number("processor"),
        Head::Number("busy (%)"),
        Head::Number("run queue"),
        Head::Text("mostly"),
    ]);
    for (processor, queue) in logged.queues.iter().enumerate() {
        let busy = logged.busy(processor);
        // A machine may have room for processors that are not there.
        if busy.is_some() || queue.is_some() {
            let busy = busy.map_or("·".into(), percent);
            let queue = queue.map_or("·".into(), |length| format!("{length:.2}"));
            table.row([processor.to_string(), busy, queue, mostly(logged, processor)]);
        }
    }
    table
}

/// The three domains that used a processor most.
fn mostly(logged: &Logged, processor: usize) -> String {
    let used = |domain: &&DomainReport| domain.service_ns.get(processor).copied().unwrap_or(0);
    let mut domains: Vec<_> = logged.report.domains.iter().filter(|domain| !is_idle(domain)).collect();
    domains.retain(|domain| used(domain) > 0);
    domains.sort_by_key(|domain| std::cmp::Reverse(used(domain)));
    let name = |domain: &&DomainReport| {
        let share = used(domain) as f64 / 1e9 / logged.seconds().max(1e-9);
        format!("{} {} %", shorten(&domain.name, NAME), percent(share))
    };
    domains.iter().take(3).map(name).collect::<Vec<_>>().join(", ")
}

fn events(logged: &Logged) -> Table {
    let mut heads = vec![Head::Name("event"), Head::Name("kind"), Head::Name("domain")];
    heads.extend(["rows", "per second", "sum", "last"].map(Head::Number));
    let mut table = Table::new(heads);
    for domain in ordered(logged) {
        for event in domain.events.iter().filter(|event| event.kind != "counter") {
            table.row(event_row(logged, domain, event));
        }
    }
    table
}

fn event_row(logged: &Logged, domain: &DomainReport, event: &EventReport) -> [String; 7] {
    [
        shorten(&event.name, NAME),
        event.kind.into(),
        shorten(&domain.name, NAME),
        grouped(event.rows),
        rate(event.rows, logged),
        grouped(event.sum),
        grouped(event.last),
    ]
}

/// The client-to-driver transaction matrix, without its zeroes.
pub fn transactions(logged: &Logged) -> Table {
    let heads =
        [Head::Name("client"), Head::Name("driver"), Head::Number("times"), Head::Number("per second")];
    let mut table = Table::new(heads);
    for dealing in &logged.report.transactions {
        let names = [&dealing.domain, &dealing.correspondent].map(|name| shorten(name, NAME));
        table.row(names.into_iter().chain([grouped(dealing.count), rate(dealing.count, logged)]));
    }
    table
}

/// What was lost, and what looking cost.
pub fn completeness(logged: &Logged) -> String {
    let cost = logged.report.cost;
    let share = cost.used_ns as f64 / cost.passed_ns.max(1) as f64;
    format!("{}\nreading the logs took {} % of one processor", logged.report.completeness, percent(share))
}
