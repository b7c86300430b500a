//! `mete sim`: runs a scenario on a simulated machine, under one policy or under several side by side.

mod list;
mod objects;
mod sweep;
mod tables;

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::error::ErrorKind;
use mete_base::draft::Draft;
use mete_base::nearest::nearest;
use mete_base::unknown_key::UnknownKey;
use mete_command::command_line::Mistake;
use mete_command::output::Output;
use mete_command::table::number;
use mete_command::value::{duration, none_or_more, one_or_more};
use mete_command::{failure, interrupt};
use mete_policy::Entry;
use mete_sim::cost::{self, DecisionCost};
use mete_sim::sweep::MOST_RUNS;
use mete_sim::{
    Recorder, Report, Scenario, ScenarioError, Setting, Stalled, Sweep, Varied, all_processors, in_parallel,
    report, trace,
};

use crate::parse::policy;

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
        return list::list(output).map(|()| ExitCode::SUCCESS);
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

/// Measures the policies one after the other, and after everything else, so that nothing disturbs the clock;
/// `None` for each policy if that is not asked for.
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
        objects::objects(name, report, *cost, output)?;
    }
    match reports {
        [report] => output.text(tables::clients(report))?,
        several => tables::side_by_side(several, output)?,
    }
    output.text(String::new())?;
    output.text(tables::summary(reports))?;
    output.text(tables::network(reports))?;
    if options.cost { output.text(tables::costs(reports, costs)) } else { Ok(()) }
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

fn settings(options: &SimOptions) -> Vec<Setting> {
    options.set.iter().cloned().chain(options.length.map(Setting::duration)).collect()
}

/// An error in the words of the command line, with the name that may have been meant.
fn refused(options: &SimOptions, error: ScenarioError) -> anyhow::Error {
    match (error, options.length) {
        (ScenarioError::Setting { setting, what, .. }, Some(length))
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
        (error, _) => match error.unknown_key().and_then(meant_key) {
            Some(meant) => anyhow!("{error}; did you mean `{meant}`?"),
            None => anyhow!(error),
        },
    }
}

/// The key that may have been meant.
fn meant_key(unknown: &UnknownKey) -> Option<&str> {
    nearest(&unknown.written, unknown.known.iter().map(String::as_str))
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

/// One run that is written as a trace. If the run is stopped, there is no trace: a part of a trace would look
/// like the trace of a shorter run.
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
