//! `mete bench`: the costs of logging on this machine, with the verdict on each bar.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use mete_bench::Turn;
use mete_command::output::Output;
use mete_command::progress::Steps;
use mete_command::table::{Head, Table};
use mete_command::value::duration;
use mete_command::{failure, interrupt};
use mete_measure::{Reason, Report, Row};
use mete_sched::{DomainSpec, Scheduler, Selector, Settings};
use serde::Serialize;

use crate::demo::Placement;

/// Options of `mete bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Measure only groups whose names contain NAME
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Measure with a sixth of the repetitions
    #[arg(long)]
    quick: bool,
    /// How long to measure the demo's requests at most, with and without logging; it ends sooner if the cost is
    /// known to within one percent. The floor is measured for as long. Two minutes if not given, or 15 s with --quick
    #[arg(long, value_name = "TIME", value_parser = duration)]
    requests_for: Option<Duration>,
    /// Let the kernel move the demo's processes between processors, as in the demo itself; this adds noise
    #[arg(long)]
    requests_move: bool,
    /// Print one JSON object a row: see docs/json.md
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo mete bench           everything: four to seven minutes
  sudo mete bench --only demo --requests-for 20m   how logging slows requests
  sudo mete bench --only floor --requests-for 20m  the parts of that cost
  sudo mete bench --quick   a rough idea in half a minute
  mete bench --only user    rows of programs with probes, without root
  sudo mete bench --json | jq -r 'select(.holds == false) | .name'

Ratios are taken within one run, because other load changes absolute times. The column 95 % is a
confidence interval of the median. A bar holds if the whole interval meets it, and does not hold if no
part of the interval meets it. Otherwise, and where the interval reaches down to zero, the result is too
noisy to say. A bar that does not hold is a result like others: the exit status is 0. Ctrl-C ends the
run with the results so far and exit status 130.";

/// Measures and prints.
pub fn run(options: &Options, output: &mut Output) -> anyhow::Result<ExitCode> {
    interrupt::listen()?;
    let groups: Vec<_> = mete_bench::groups().collect();
    if let Some(only) = options.only.as_ref().filter(|only| !groups.iter().any(|group| group.contains(*only)))
    {
        bail!("nothing to measure is called {only:?}: there are {}", groups.join(", "));
    }
    if cfg!(debug_assertions) {
        failure::say("this is a build without optimisation: its own costs are not those of a release build");
    }
    let placement = if options.requests_move { Placement::Free } else { Placement::Fixed };
    let asked = mete_bench::Options {
        only: options.only.clone(),
        is_quick: options.quick,
        scheduler: Some(Box::new(scheduler)),
        requests: Some(Box::new(move || crate::demo::requests(placement))),
        requests_for: options.requests_for,
    };
    let report = mete_bench::bench(&asked, &mut Steps::new());
    print(&report, output)?;
    Ok(interrupt::ended(report.is_complete))
}

/// A domain that no process belongs to.
fn empty_domain(number: u32) -> DomainSpec {
    DomainSpec {
        name: format!("domain-{number}"),
        selectors: vec![Selector::comm(format!("mete-bench-{number}").as_ref())],
        role: None,
    }
}

/// A scheduler that observes the whole system with 16 domains. It would act if there were anything to act on.
fn scheduler() -> Result<Turn, Reason> {
    let settings = Settings {
        needs_kernel: true,
        may_be_empty: true,
        policy: Some(mete_policy::affinity::Settings::default()),
        ..Settings::default()
    };
    let mut scheduler =
        Scheduler::start(settings, (0..16).map(empty_domain).collect()).map_err(Reason::from_error)?;
    Ok(Box::new(move || {
        scheduler.tick();
        Ok(())
    }))
}

/// What `--json` prints for each row.
#[derive(Serialize)]
struct RowObject<'a> {
    kind: &'static str,
    #[serde(flatten)]
    row: &'a Row,
}

/// Prints the rows as a table with its notes below, or as JSON.
pub fn print(report: &Report, output: &mut Output) -> anyhow::Result<()> {
    report.rows.iter().try_for_each(|row| output.object(&RowObject { kind: "row", row }))?;
    output.text(format!("{}\n{}\n", report.title, report.machine.line()))?;
    output.text(table(report).text())?;
    print_notes(report, output)
}

fn table(report: &Report) -> Table {
    let mut heads = vec![Head::Text("what"), Head::Name("unit")];
    heads.extend(["median", "95 %", "min", "bar", "holds", "note"].map(Head::Number));
    let mut table = Table::new(heads);
    let notes = notes(report);
    for row in &report.rows {
        let note = notes.iter().position(|note| **note == row.note);
        let note = note.map_or(String::new(), |number| format!("[{}]", number + 1));
        let bar = row.bar.map(|bar| bar.to_string()).unwrap_or_default();
        let cells = [
            row.name.clone(),
            row.unit.into(),
            value(row.median),
            row.interval_text(figure),
            value(row.min),
            bar,
        ];
        table.row(cells.into_iter().chain([row.verdict_text().into(), note]));
    }
    table
}

/// Each note once.
fn notes(report: &Report) -> Vec<&str> {
    let mut notes: Vec<&str> = Vec::new();
    for row in report.rows.iter().filter(|row| !row.note.is_empty()) {
        if !notes.contains(&row.note.as_str()) {
            notes.push(&row.note);
        }
    }
    notes
}

/// A figure, or a dot where there is none.
fn value(value: Option<f64>) -> String {
    value.map_or("·".into(), figure)
}

/// A number with about three digits.
fn figure(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        medium if medium >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn print_notes(report: &Report, output: &mut Output) -> anyhow::Result<()> {
    let mut table = Table::new([Head::Number("note"), Head::Text("")]);
    for (note, number) in notes(report).into_iter().zip(1..) {
        table.row([format!("[{number}]"), note.to_owned()]);
    }
    if table.is_empty() { Ok(()) } else { output.text(format!("\n{}", table.text())) }
}
