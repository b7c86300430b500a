//! `mete bench`: the costs of logging on this machine, with the verdict on each bar.

use std::process::ExitCode;

use anyhow::bail;
use clap::error::ErrorKind;
use mete_bench::Turn;
use mete_command::command_line::Mistake;
use mete_command::lab::BenchOptions;
use mete_command::output::Output;
use mete_command::progress::Steps;
use mete_command::table::{Head, Table};
use mete_command::{failure, interrupt};
use mete_demo::Placement;
use mete_measure::{Reason, Report, Row};
use mete_plot::short;
use mete_sched::{DomainSpec, Scheduler, Selector, Settings};
use serde::Serialize;

/// Whether there is anything to measure.
///
/// # Errors
///
/// That no measurement has the name that was asked for.
pub fn check(options: &BenchOptions) -> Result<(), Mistake> {
    let groups: Vec<_> = mete_bench::groups().collect();
    match &options.only {
        Some(only) if !groups.iter().any(|group| group.contains(only.as_str())) => {
            let mistake = format!("nothing to measure is called {only:?}: there are {}", groups.join(", "));
            Err((ErrorKind::InvalidValue, mistake))
        }
        _ => Ok(()),
    }
}

/// Measures and prints.
pub fn run(options: &BenchOptions, output: &mut Output) -> anyhow::Result<ExitCode> {
    // From here on Ctrl-C ends the run in order: what has been switched on is switched off again.
    interrupt::listen()?;
    if cfg!(debug_assertions) {
        failure::say("this is a build without optimisation: its own costs are not those of a release build");
    }
    let request_placement = if options.requests_move { Placement::Free } else { Placement::Fixed };
    let asked = mete_bench::Options {
        only: options.only.clone(),
        is_quick: options.quick,
        scheduler: Some(Box::new(scheduler)),
        request_placement: Some(request_placement),
        requests_for: options.requests_for,
    };
    let report = mete_bench::bench(&asked, &mut Steps::default());
    print(&report, output)?;
    if let Some(only) = options.only.as_ref().filter(|_| report.is_complete && !has_figures(&report)) {
        bail!("nothing of {only} could be measured here: the notes say what is missing");
    }
    Ok(interrupt::ended(report.is_complete))
}

fn has_figures(report: &Report) -> bool {
    report.rows.iter().any(|row| row.median.is_some())
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
    // Notes are sentences, too long for a cell: a row has their number, and they stand below.
    let notes = notes(report);
    for row in &report.rows {
        let note = notes.iter().position(|note| **note == row.note);
        let note = note.map_or(String::new(), |number| format!("[{}]", number + 1));
        let bar = row.bar.map(|bar| bar.to_string()).unwrap_or_default();
        let cells = [
            row.name.clone(),
            row.unit.into(),
            value(row.median),
            row.interval_text(short),
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
    value.map_or("·".into(), short)
}

fn print_notes(report: &Report, output: &mut Output) -> anyhow::Result<()> {
    let mut table = Table::new([Head::Number("note"), Head::Text("")]);
    for (note, number) in notes(report).into_iter().zip(1..) {
        table.row([format!("[{number}]"), note.to_owned()]);
    }
    if table.is_empty() { Ok(()) } else { output.text(format!("\n{}", table.text())) }
}
