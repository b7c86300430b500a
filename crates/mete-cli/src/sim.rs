//! `mete sim`: runs a scenario on a simulated machine, under one policy or under several side by side.

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::error::ErrorKind;
use mete_base::draft::Draft;
use mete_base::nearest::nearest;
use mete_command::command_line::Mistake;
use mete_command::output::Output;
use mete_command::table::{Head, Table, count, grouped, number, shorten};
use mete_command::value::{duration, none_or_more, one_or_more};
use mete_command::{failure, interrupt};
use mete_policy::{CATALOG, Entry, Nanoseconds};
use mete_sim::cost::{self, DecisionCost};
use mete_sim::metrics::Latencies;
use mete_sim::scenario::SHIPPED;
use mete_sim::scene::Troubles;
use mete_sim::sweep::MOST_RUNS;
use mete_sim::{
    ClientReport, NetworkReport, Recorder, Report, Scenario, ScenarioError, Setting, Stalled, Sweep, Varied,
    all_processors, in_parallel, report, trace,
};
use serde::Serialize;

use crate::latency::{NOTHING, milliseconds, quantile, signed_milliseconds};
use crate::parse::policy;
use crate::sweep;

/// Options of `mete sim`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SimOptions {
    /// A scenario file, or the name of a scenario that comes with the program: --list shows them
    scenario: Option<String>,
    /// List the scenarios that come with the program, and the policies
    #[arg(long)]
    list: bool,
    /// A policy instead of the scenario's; several are shown side by side
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = policy)]
    policy: Vec<&'static Entry>,
    /// The seed of random numbers, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = none_or_more::<u64>)]
    seed: Option<u64>,
    /// Change a key of the scenario, by its dotted path: host.processors=2, task.batch.share=5
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<Setting>,
    /// How long the simulated time is, instead of the scenario's: 10s, 500ms, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    length: Option<Duration>,
    /// Run with N seeds, each higher by 1 than the one before, and print means with confidence intervals
    #[arg(long, value_name = "N", value_parser = seeds, conflicts_with = "trace")]
    seeds: Option<u64>,
    /// Run with each of these values of a key of the scenario; if repeated, with each combination of values
    #[arg(long, value_name = "KEY=VALUE,VALUE", conflicts_with = "trace")]
    vary: Vec<Varied>,
    /// Write the figures of each run of --seeds, --vary or --plot into a file, as comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw a plot of each figure into this folder: bars by client, or lines over the values of one --vary
    #[arg(long, value_name = "DIR", conflicts_with = "trace")]
    plot: Option<PathBuf>,
    /// Write every context switch into a file, as rows of the log facility; takes a single policy
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Measure how long a decision takes on this machine: the only figure that differs between runs
    #[arg(long, conflicts_with_all = ["seeds", "vary", "plot"])]
    cost: bool,
    /// Print one JSON object for each policy, and one for each client under it
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  mete sim --list
  mete sim mix
  mete sim mix --policy vtrr,wfq,eevdf --seed 7
  mete sim mix --policy vtrr,wfq --seeds 20 --vary host.switch_us=0,5,50
  mete sim mix --policy vtrr,wfq,rr --plot plots
  mete sim processors --set host.processors=2 --for 60s
  mete sim mix --trace mix.rows
  mete sim mix --policy vtrr,wfq --cost
  mete sim mix --json | jq -r 'select(.kind == \"client\") | .got'

A seed gives the same run on every machine. Scenario files are described in docs/scenarios.md.";

impl SimOptions {
    /// Whether there is anything to do, and the options go together.
    ///
    /// # Errors
    ///
    /// The kind of the mistake, and how to correct it.
    pub fn check(&self) -> Result<(), Mistake> {
        let policies = self.policy.len();
        if self.list {
            Ok(())
        } else if self.scenario.is_none() {
            let mistake = "the <SCENARIO> is missing: give a file, or a name that mete sim --list shows";
            Err((ErrorKind::MissingRequiredArgument, mistake.to_owned()))
        } else if self.csv.is_some() && !self.is_sweep() {
            let mistake =
                "--csv writes the figures of several runs: it takes --seeds, --vary or --plot beside it";
            Err((ErrorKind::MissingRequiredArgument, mistake.to_owned()))
        } else if self.trace.is_some() && policies > 1 {
            let mistake = format!("--trace takes a single policy, and {policies} are asked for");
            Err((ErrorKind::ArgumentConflict, mistake))
        } else {
            Ok(())
        }
    }

    /// Whether several runs are asked for.
    fn is_sweep(&self) -> bool {
        self.seeds.is_some() || !self.vary.is_empty() || self.plot.is_some()
    }
}

/// A key and a value. Whether there is such a key, the scenario says.
fn setting(text: &str) -> Result<Setting, String> {
    text.parse().map_err(|error| match error {
        // The message of the command line names the option and the setting itself.
        ScenarioError::Setting { what, .. } => what,
        error => error.to_string(),
    })
}

/// A number of seeds. The results of more runs than [`MOST_RUNS`] would take too much memory.
fn seeds(text: &str) -> Result<u64, String> {
    let few = one_or_more::<u64>(text).ok().filter(|&seeds| seeds <= MOST_RUNS);
    few.ok_or_else(|| format!("it takes a whole number that is 1 or more, and at most {MOST_RUNS}"))
}

/// Simulates and prints.
pub fn run(options: &SimOptions, output: &mut Output) -> anyhow::Result<ExitCode> {
    let Some(name) = options.scenario.as_ref().filter(|_| !options.list) else {
        return list(output).map(|()| ExitCode::SUCCESS);
    };
    interrupt::listen()?;
    let scenario = Scenario::load(name, &settings(options)).map_err(|error| refused(options, error))?;
    let policies = policies(options, &scenario);
    let seed = options.seed.unwrap_or(scenario.seed);
    if options.is_sweep() {
        let count = options.seeds.unwrap_or(1);
        // Near the largest number there may be fewer seeds than were asked for.
        let end = seed.checked_add(count);
        let end =
            end.ok_or_else(|| anyhow!("there are no {count} seeds from {seed} on: take a smaller --seed"))?;
        let seeds = seed..end;
        let sweep = Sweep::new(name, &settings(options), &options.vary, &policies, seeds)?;
        let files = sweep::Files { csv: options.csv.as_deref(), plots: options.plot.as_deref() };
        return sweep::run(name, &sweep, &files, output);
    }
    let reports = match (&options.trace, policies.as_slice()) {
        // `check` has refused a trace of several policies.
        (Some(path), [policy, ..]) => traced(&scenario, policy, seed, path)?,
        (_, policies) => simulate(&scenario, policies, seed)?,
    };
    let Some(reports) = reports else {
        let trace = if options.trace.is_some() { ", nor is there a trace" } else { "" };
        return Ok(interrupt::ended_without_results(&format!(
            "not all runs are over, so nothing is shown{trace}"
        )));
    };
    show(options, name, &reports, &costs(options, &scenario, &policies, seed)?, output)?;
    Ok(ExitCode::SUCCESS)
}

/// Measures the policies one after the other, and after everything else, so that nothing disturbs the clock; `None` for
/// each policy if that is not asked for.
fn costs(
    options: &SimOptions,
    scenario: &Scenario,
    policies: &[&Entry],
    seed: u64,
) -> anyhow::Result<Vec<Option<DecisionCost>>> {
    let measured = policies.iter().map(|policy| match options.cost {
        true => cost::measure(scenario, policy, seed).map_err(|stalled| stands_still(scenario, &stalled)),
        false => Ok(None),
    });
    measured.collect()
}

fn show(
    options: &SimOptions,
    name: &str,
    reports: &[Report],
    costs: &[Option<DecisionCost>],
    output: &mut Output,
) -> anyhow::Result<()> {
    reports.iter().for_each(say_who_waits);
    for (report, cost) in reports.iter().zip(costs) {
        objects(name, report, *cost, output)?;
    }
    match reports {
        [report] => output.text(clients(report))?,
        several => side_by_side(several, output)?,
    }
    output.text(String::new())?;
    output.text(summary(reports))?;
    output.text(network(reports))?;
    if options.cost { output.text(costs_table(reports, costs)) } else { Ok(()) }
}

/// The most waiting tasks that are named.
const MOST_WAITING: usize = 5;

/// Names the tasks that still waited at the end. The scenario may want that, or it may be a deadlock.
fn say_who_waits(report: &Report) {
    let named: Vec<_> = report.waiting.iter().take(MOST_WAITING).map(ToString::to_string).collect();
    if named.is_empty() {
        return;
    }
    let more = match report.waiting.len().saturating_sub(MOST_WAITING) {
        0 => String::new(),
        more => format!(", and {}", number(more as u64, "more task")),
    };
    failure::say(&format!("{}: at the end {}{more}", report.policy, named.join(", ")));
}

fn costs_table(reports: &[Report], costs: &[Option<DecisionCost>]) -> String {
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

fn settings(options: &SimOptions) -> Vec<Setting> {
    options.set.iter().cloned().chain(options.length.map(Setting::duration)).collect()
}

/// An error in the words of the command line, with the name that may have been meant.
fn refused(options: &SimOptions, error: ScenarioError) -> anyhow::Error {
    match (error, options.length) {
        (ScenarioError::Setting { setting, what }, Some(length))
            if options.set.iter().all(|set| set.to_string() != setting) =>
        {
            anyhow!("--for {length:?}: {what}; take a longer time, or --set warm_up_ms=0 beside it")
        }
        (ScenarioError::Unknown { name, known }, _) => match nearest(&name, known.split(", ")) {
            Some(meant) => {
                anyhow!("there is no scenario {name:?}: did you mean {meant}? mete sim --list shows all")
            }
            None => anyhow!(ScenarioError::Unknown { name, known }),
        },
        (error, _) => match meant_key(&error.to_string()) {
            Some(meant) => anyhow!("{error}; did you mean `{meant}`?"),
            None => anyhow!(error),
        },
    }
}

/// The key that may have been meant. The error of the scenario's parser names the unknown key and the known ones.
fn meant_key(said: &str) -> Option<String> {
    let (_, rest) = said.split_once("unknown field `")?;
    let (written, known) = rest.split_once('`')?;
    let known = known.split('`').skip(1).step_by(2);
    nearest(written, known).map(str::to_owned)
}

fn policies(options: &SimOptions, scenario: &Scenario) -> Vec<&'static Entry> {
    if options.policy.is_empty() { vec![scenario.policy] } else { options.policy.clone() }
}

/// Simulates under each policy; `None` if it was stopped.
fn simulate(scenario: &Scenario, policies: &[&Entry], seed: u64) -> anyhow::Result<Option<Vec<Report>>> {
    let reports = in_parallel(
        policies.len(),
        all_processors(),
        |number| simulate_one(scenario, policies[number], seed, ()),
        interrupt::go_on,
    );
    let reports = reports.unwrap_or_default().into_iter();
    let reports = reports.map(|report| Ok(report?.map(|(report, ())| report)));
    let reports = reports.collect::<anyhow::Result<Option<Vec<_>>>>()?;
    Ok(reports.filter(|reports| reports.len() == policies.len()))
}

/// One run, and the recorder that was given; `None` if the run was stopped.
fn simulate_one<R: Recorder>(
    scenario: &Scenario,
    policy: &Entry,
    seed: u64,
    also: R,
) -> anyhow::Result<Option<(Report, R)>> {
    let run = report::run_while(scenario, policy, seed, also, interrupt::go_on);
    Ok(run.map_err(|stalled| stands_still(scenario, &stalled))?.continue_value())
}

/// One run that is written as a trace. If the run is stopped, there is no trace: a part of a trace would look like the
/// trace of a shorter run.
fn traced(
    scenario: &Scenario,
    policy: &Entry,
    seed: u64,
    path: &Path,
) -> anyhow::Result<Option<Vec<Report>>> {
    let unwritten = || format!("cannot write the trace {}", path.display());
    let draft = Draft::begin(path).with_context(unwritten)?;
    let writer = trace::Writer::new(scenario, BufWriter::new(draft.file())).with_context(unwritten)?;
    let Some((report, writer)) = simulate_one(scenario, policy, seed, writer)? else { return Ok(None) };
    writer.finish().with_context(unwritten)?;
    draft.close().with_context(unwritten)?;
    Ok(Some(vec![report]))
}

/// An error that names the client, which users do not know by its number.
fn stands_still(scenario: &Scenario, stalled: &Stalled) -> anyhow::Error {
    let client = scenario.clients.get(stalled.client.index());
    anyhow!("{}: {stalled}", client.map_or("?", |client| client.name.as_str()))
}

/// One line of `--list --json`.
#[derive(Serialize)]
struct Listed<'a> {
    kind: &'static str,
    name: &'a str,
    about: &'a str,
}

fn list(output: &mut Output) -> anyhow::Result<()> {
    let mut scenarios = Table::new([Head::Name("scenario"), Head::Text("shows")]);
    for shipped in SHIPPED {
        let scenario = Scenario::parse(shipped.name, shipped.text, &[])?;
        output.object(&Listed { kind: "scenario", name: shipped.name, about: &scenario.about })?;
        scenarios.row([shipped.name.to_owned(), scenario.about]);
    }
    let mut policies = Table::new([Head::Name("policy"), Head::Text("is")]);
    for entry in CATALOG {
        output.object(&Listed { kind: "policy", name: entry.name, about: entry.about })?;
        policies.row([entry.name, entry.about].map(str::to_owned));
    }
    output.text(scenarios.text())?;
    output.text(String::new())?;
    output.text(policies.text())
}

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

fn clients(report: &Report) -> String {
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
type Figure = (&'static str, fn(&ClientReport) -> String);

const FIGURES: [Figure; 10] = [
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

fn side_by_side(reports: &[Report], output: &mut Output) -> anyhow::Result<()> {
    let Some(first) = reports.first() else { return Ok(()) };
    for (number, (what, figure)) in FIGURES.into_iter().enumerate() {
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
fn summary(reports: &[Report]) -> String {
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
fn network(reports: &[Report]) -> String {
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

/// What `--json` prints for each policy.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "run")]
struct RunObject<'a> {
    scenario: &'a str,
    policy: &'a str,
    seed: u64,
    measured_ns: u64,
    run_ns: u64,
    switch_ns: u64,
    idle_ns: u64,
    decisions: u64,
    fairness: Option<f64>,
    boost_hit_ratio: Option<f64>,
    cost: Option<DecisionCost>,
    counters: std::collections::BTreeMap<&'static str, u64>,
    network: NetworkObject,
}

/// Losses and repetitions of streams on the network.
#[derive(Serialize)]
struct NetworkObject {
    lost: u64,
    sent_again: u64,
    timers_ran_out: u64,
    timers_in_vain: u64,
}

/// What `--json` prints for each client under a policy.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "client")]
struct ClientObject<'a> {
    scenario: &'a str,
    policy: &'a str,
    client: &'a str,
    domain: &'a str,
    share: u32,
    wanted: f64,
    got: f64,
    ran_ns: u64,
    switches: u64,
    wakes: u64,
    done: u64,
    longest_wait_ns: u64,
    starved: u64,
    starved_ns: u64,
    spun_ns: u64,
    error_ns: i64,
    error_lowest_ns: i64,
    error_highest_ns: i64,
    wake_to_run: Option<Times>,
    wake_to_block: Option<Times>,
    response: Option<Times>,
}

#[derive(Serialize)]
struct Times {
    count: u64,
    mean_ns: Option<f64>,
    median_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
}

impl Times {
    fn of(times: &Latencies) -> Times {
        Times {
            count: times.count(),
            mean_ns: times.mean_ns(),
            median_ns: times.quantile_ns(0.5).map(Nanoseconds::get),
            p99_ns: times.quantile_ns(0.99).map(Nanoseconds::get),
            max_ns: times.longest_ns().map(Nanoseconds::get),
        }
    }
}

fn objects(
    scenario: &str,
    report: &Report,
    cost: Option<DecisionCost>,
    output: &mut Output,
) -> anyhow::Result<()> {
    output.object(&RunObject {
        scenario,
        policy: &report.policy,
        seed: report.seed,
        measured_ns: report.measured_ns.get(),
        run_ns: report.times.run_ns.get(),
        switch_ns: report.times.switch_ns.get(),
        idle_ns: report.times.idle_ns.get(),
        decisions: report.decisions,
        fairness: report.fairness,
        boost_hit_ratio: report.boost_hit_ratio(),
        cost,
        counters: report.counters.iter().copied().collect(),
        network: NetworkObject {
            lost: report.network.lost,
            sent_again: report.network.senders.sent_again,
            timers_ran_out: report.network.senders.ran_out,
            timers_in_vain: report.network.senders.in_vain,
        },
    })?;
    for client in &report.clients {
        output.object(&object(scenario, &report.policy, client))?;
    }
    Ok(())
}

fn object<'a>(scenario: &'a str, policy: &'a str, client: &'a ClientReport) -> ClientObject<'a> {
    ClientObject {
        scenario,
        policy,
        client: &client.name,
        domain: &client.domain,
        share: client.share,
        wanted: client.wanted,
        got: client.got,
        ran_ns: client.ran_ns.get(),
        switches: client.switches,
        wakes: client.wakes,
        done: client.done,
        longest_wait_ns: client.longest_wait_ns.get(),
        starved: client.starved,
        starved_ns: client.starved_ns.get(),
        spun_ns: client.spun_ns.get(),
        error_ns: client.error.last_ns,
        error_lowest_ns: client.error.lowest_ns,
        error_highest_ns: client.error.highest_ns,
        wake_to_run: client.wake_to_run.as_ref().map(Times::of),
        wake_to_block: client.wake_to_block.as_ref().map(Times::of),
        response: client.response.as_ref().map(Times::of),
    }
}
