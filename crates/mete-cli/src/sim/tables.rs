//! What `mete sim` prints for people.

use mete_command::output::Output;
use mete_command::table::{Head, Table, count, grouped, number, shorten};
use mete_policy::Nanoseconds;
use mete_sim::cost::DecisionCost;
use mete_sim::scene::Troubles;
use mete_sim::{ClientReport, NetworkReport, Report};

use crate::latency::{NOTHING, milliseconds, quantile, signed_milliseconds};

/// The most letters of a client's name in a table.
const NAME: usize = 20;
/// The most clients in a table: more are for scripts to look at.
const MOST_CLIENTS: usize = 100;

/// A line about the clients that are not in a table; empty if all of them are.
fn left_out(clients: usize) -> String {
    match clients.saturating_sub(MOST_CLIENTS) {
        0 => String::new(),
        more => format!("\n… and {} more, which --json prints", number(more as u64, "client")),
    }
}

/// What each client had under one policy.
pub fn clients(report: &Report) -> String {
    let heads = ["wanted %", "got %", "switches", "wakes", "median ms", "99 % ms", "max ms", "wait ms"];
    let mut table = Table::of_numbers("client", heads);
    for client in report.clients.iter().take(MOST_CLIENTS) {
        table.row([
            shorten(&client.name, NAME),
            percent(client.wanted),
            percent(client.got),
            grouped(client.switches),
            count(client.wakes),
            quantile(client.wake_to_run.as_ref(), 0.5),
            quantile(client.wake_to_run.as_ref(), 0.99),
            quantile(client.wake_to_run.as_ref(), 1.0),
            milliseconds(client.longest_wait_ns.get()),
        ]);
    }
    format!(
        "{}{}\n\nmedian, 99 %, max: from waking to running. wait: the longest time ready without running.\n\n{}{}{}",
        table.text(),
        left_out(report.clients.len()),
        errors(report),
        responses(report),
        spins(report)
    )
}

/// How far each client's service was from what its share promises.
fn errors(report: &Report) -> String {
    let heads = ["error ms", "lowest ms", "highest ms", "starved", "starved ms"];
    let mut table = Table::of_numbers("client", heads);
    for client in report.clients.iter().take(MOST_CLIENTS) {
        let figures = [client.error.last_ns, client.error.lowest_ns, client.error.highest_ns];
        let starved =
            if client.starved > 0 { milliseconds(client.starved_ns.get()) } else { NOTHING.to_owned() };
        let figures = figures.map(signed_milliseconds).into_iter().chain([count(client.starved), starved]);
        table.row([shorten(&client.name, NAME)].into_iter().chain(figures));
    }
    format!(
        "{}{}\n\nerror: the service received, minus the service that an ideal server would give, which divides itself \
         among all ready clients by their shares; at the end and at its extremes. starved: how often a client was \
         ready for longer than the limit without running, and for how long.",
        table.text(),
        left_out(report.clients.len()),
    )
}

/// A table of answered requests; empty if there are none.
fn responses(report: &Report) -> String {
    let mut table = Table::of_numbers("client", ["answers", "median ms", "99 % ms", "max ms"]);
    for client in &report.clients {
        if let Some(response) = &client.response {
            let figures = [0.5, 0.99, 1.0].map(|part| quantile(Some(response), part));
            table.row([shorten(&client.name, NAME), grouped(response.count())].into_iter().chain(figures));
        }
    }
    if table.is_empty() { String::new() } else { format!("\n\n{}", table.text()) }
}

/// A table of the time that clients spun for spin locks; empty if none did.
fn spins(report: &Report) -> String {
    let mut table = Table::of_numbers("client", ["spun ms", "of its time %"]);
    for client in report.clients.iter().filter(|client| !client.spun_ns.is_zero()) {
        let part = percent(client.spun_ns.part_of(client.ran_ns));
        table.row([shorten(&client.name, NAME), milliseconds(client.spun_ns.get()), part]);
    }
    if table.is_empty() { String::new() } else { format!("\n\n{}", table.text()) }
}

/// The title of a figure, and the figure of a client.
type Compared = (&'static str, fn(&ClientReport) -> String);

const COMPARED: [Compared; 10] = [
    ("processor time, %", |client| percent(client.got)),
    ("from waking to running, median, ms", |client| quantile(client.wake_to_run.as_ref(), 0.5)),
    ("from waking to running, 99 %, ms", |client| quantile(client.wake_to_run.as_ref(), 0.99)),
    ("from asking to being answered, median, ms", |client| quantile(client.response.as_ref(), 0.5)),
    ("longest time ready without running, ms", |client| milliseconds(client.longest_wait_ns.get())),
    ("service-time error, lowest, ms", |client| signed_milliseconds(client.error.lowest_ns)),
    ("service-time error, highest, ms", |client| signed_milliseconds(client.error.highest_ns)),
    ("how often it starved", |client| count(client.starved)),
    ("spinning for spin locks, ms", |client| match client.spun_ns {
        Nanoseconds::ZERO => NOTHING.to_owned(),
        spun_ns => milliseconds(spun_ns.get()),
    }),
    ("switches to it", |client| grouped(client.switches)),
];

/// A table for each figure, with a column for each policy.
pub fn side_by_side(reports: &[Report], output: &mut Output) -> anyhow::Result<()> {
    let Some(first) = reports.first() else { return Ok(()) };
    for (number, (what, figure)) in COMPARED.into_iter().enumerate() {
        let policies = reports.iter().map(|report| Head::Number(&report.policy));
        let heads = [Head::Name("client"), Head::Number("wanted %")].into_iter().chain(policies);
        let mut table = Table::new(heads);
        let mut has_any = false;
        for (client, figures) in first.clients.iter().enumerate().take(MOST_CLIENTS) {
            let cells: Vec<_> = reports.iter().map(|report| figure(&report.clients[client])).collect();
            has_any |= cells.iter().any(|cell| cell != NOTHING);
            let left = [shorten(&figures.name, NAME), percent(figures.wanted)];
            table.row(left.into_iter().chain(cells));
        }
        if has_any {
            let gap = if number == 0 { "" } else { "\n" };
            output.text(format!("{gap}{what}\n{}{}", table.text(), left_out(first.clients.len())))?;
        }
    }
    Ok(())
}

/// One line a policy: what the processors did.
pub fn summary(reports: &[Report]) -> String {
    let heads =
        ["run %", "switch %", "idle %", "decisions", "fairness", "wait ms"].into_iter().map(Head::Number);
    let heads = [Head::Name("policy")].into_iter().chain(heads).chain([Head::Text("its own counters")]);
    let mut table = Table::new(heads);
    for report in reports {
        let part = |time: Nanoseconds| percent(time.part_of(report.times.total_ns()));
        let counters = report.counters.iter().filter(|(_, count)| *count > 0);
        let counters = counters.map(|(name, count)| format!("{name} {}", grouped(*count)));
        let hits = report.boost_hit_ratio().map(|hits| format!("hits of boosts {} %", percent(hits)));
        let counters: Vec<_> = hits.into_iter().chain(counters).collect();
        table.row([
            report.policy.clone(),
            part(report.times.run_ns),
            part(report.times.switch_ns),
            part(report.times.idle_ns),
            grouped(report.decisions),
            report.fairness.map_or(NOTHING.into(), |index| format!("{index:.3}")),
            milliseconds(report.longest_wait_ns().get()),
            counters.join(", "),
        ]);
    }
    table.text()
}

/// One line for each policy under which streams suffered on the network.
pub fn network(reports: &[Report]) -> String {
    let suffered = reports.iter().filter(|report| report.network != NetworkReport::default());
    suffered.map(network_line).collect()
}

fn network_line(report: &Report) -> String {
    let NetworkReport { lost, senders: Troubles { sent_again, ran_out, in_vain } } = report.network;
    format!(
        "network under {}: {} lost at the driver's network card, {} sent again; timers ran out {}, {} in \
         vain\n",
        report.policy,
        number(lost, "packet"),
        number(sent_again, "segment"),
        number(ran_out, "time"),
        grouped(in_vain),
    )
}

fn percent(part: f64) -> String {
    format!("{:.2}", 100.0 * part)
}

/// What a decision of each policy cost.
pub fn costs(reports: &[Report], costs: &[Option<DecisionCost>]) -> String {
    let mut table = Table::of_numbers("policy", ["ns", "calls", "decisions"]);
    for (report, cost) in reports.iter().zip(costs) {
        let figure = |value: &dyn Fn(&DecisionCost) -> String| cost.as_ref().map_or(NOTHING.into(), value);
        table.row([
            report.policy.clone(),
            figure(&|cost| format!("{:.1}", cost.ns)),
            figure(&|cost| format!("{:.2}", cost.calls)),
            figure(&|cost| grouped(cost.decisions)),
        ]);
    }
    format!(
        "\na decision, by this machine's clock\n{}\n\nns: everything that the policy did for it: picking, charging, \
         waking, ticks, observations. The calls of\nthis run were made once more to a fresh policy, without the \
         simulated machine. calls: how many there\nwere for each decision.",
        table.text()
    )
}
