//! `mete study`: the papers' figures, measured again on this machine.

use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use mete_base::draft::{self, MadeFolders};
use mete_command::command_line::Mistake;
use mete_command::output::Output;
use mete_command::progress::Steps;
use mete_command::table::{Head, Table};
use mete_command::{failure, interrupt, lab};
use mete_study::study::{ClaimResult, StudyEntry, StudyOptions, StudyResults};
use mete_study::{by_name, studies};
use serde::Serialize;

use crate::bench;

/// One line of `--list --json`.
#[derive(Serialize)]
struct ListedStudy {
    kind: &'static str,
    name: &'static str,
    shows: &'static str,
}

/// What `--json` prints for each figure.
#[derive(Serialize)]
struct FigureObject<'a> {
    kind: &'static str,
    study: &'static str,
    #[serde(flatten)]
    result: &'a ClaimResult,
}

/// Whether the options go together.
///
/// # Errors
///
/// That the study cannot be evaluated from a trace.
pub fn check(options: &lab::StudyOptions) -> Result<(), Mistake> {
    let asked = options.name.as_deref().and_then(by_name).filter(|_| options.trace.is_some());
    let Some(entry) = asked.filter(|entry| entry.of_trace.is_none()) else { return Ok(()) };
    let others = studies().filter(|entry| entry.of_trace.is_some()).map(|entry| entry.name);
    let others = others.collect::<Vec<_>>().join(", ");
    let mistake = format!("{} cannot be evaluated from a trace; these can: {others}", entry.name);
    Err((ErrorKind::ArgumentConflict, mistake))
}

/// Measures, prints, and writes what was asked for.
pub fn run(options: &lab::StudyOptions, output: &mut Output) -> anyhow::Result<ExitCode> {
    if options.list {
        return list(output).map(|()| ExitCode::SUCCESS);
    }
    interrupt::listen()?;
    let asked = options.name.as_deref().and_then(by_name);
    // A study can take minutes, and would be lost if its results could not be written then.
    let _made = options.out.as_deref().map(|directory| check_folders(directory, asked)).transpose()?;
    match asked {
        Some(entry) => one(entry, options, output),
        None => all(options, output),
    }
}

/// Checks before the work that the results can be written.
fn check_folders(directory: &Path, asked: Option<&StudyEntry>) -> anyhow::Result<MadeFolders> {
    let made = draft::check_folder(directory)?;
    let folders = studies().filter(|entry| asked.is_none_or(|asked| asked.name == entry.name));
    let mut there = folders.map(|entry| directory.join(entry.name)).filter(|folder| folder.exists());
    there.try_for_each(|folder| draft::check_results(&folder))?;
    Ok(made)
}

fn one(entry: &StudyEntry, options: &lab::StudyOptions, output: &mut Output) -> anyhow::Result<ExitCode> {
    let study = match options.trace.as_ref().zip(entry.of_trace) {
        // `check` has refused a trace for a study that cannot be evaluated from one.
        Some((directory, of_trace)) => of_trace(directory).map_err(anyhow::Error::msg)?,
        None => (entry.run)(StudyOptions { is_quick: options.quick }, &mut Steps::default()),
    };
    bench::print(&study.report, output)?;
    figures(&study, output)?;
    if !study.claim_results.is_empty() {
        output.text(format!("\n{}", table([&study]).text()))?;
    }
    keep(&study, options.out.as_deref())?;
    Ok(interrupt::ended(study.report.is_complete))
}

/// Every study, until Ctrl-C.
fn all(options: &lab::StudyOptions, output: &mut Output) -> anyhow::Result<ExitCode> {
    let mut ran = Vec::new();
    for entry in studies() {
        if interrupt::asked() {
            break;
        }
        let study = (entry.run)(StudyOptions { is_quick: options.quick }, &mut Steps::default());
        // At once, because a later study may fail to be written.
        keep(&study, options.out.as_deref())?;
        figures(&study, output)?;
        ran.push(study);
    }
    output.text(table(&ran).text())?;
    let is_done = ran.len() == studies().count() && ran.iter().all(|study| study.report.is_complete);
    Ok(interrupt::ended(is_done))
}

/// Prints the papers' figures and ours, for scripts.
fn figures(study: &StudyResults, output: &mut Output) -> anyhow::Result<()> {
    let mut objects =
        study.claim_results.iter().map(|result| FigureObject { kind: "figure", study: study.folder, result });
    objects.try_for_each(|object| output.object(&object))
}

/// Writes a study into its folder, if it is complete: an incomplete study must not replace a complete one.
fn keep(study: &StudyResults, directory: Option<&Path>) -> anyhow::Result<()> {
    let Some(directory) = directory else { return Ok(()) };
    let folder = directory.join(study.folder);
    if !study.report.is_complete {
        let (place, name) = (folder.display(), study.folder);
        failure::say(&format!("nothing was written into {place}: {name} was stopped before its end"));
        return Ok(());
    }
    let contents = study.contents();
    draft::write_all(&folder, contents.iter().map(|(name, text)| (name.as_str(), text.as_str())))?;
    failure::say(&format!("data, plots and a page are in {}", folder.display()));
    Ok(())
}

fn table<'a>(ran: impl IntoIterator<Item = &'a StudyResults>) -> Table {
    let heads = [Head::Text("figure"), Head::Text("paper's"), Head::Text("ours"), Head::Name("verdict")];
    let mut table = Table::new(heads);
    for result in ran.into_iter().flat_map(|study| &study.claim_results) {
        let ClaimResult { figure, paper, is_own_bar, ours, verdict } = result;
        let paper = if *is_own_bar { format!("our bar: {paper}") } else { paper.clone() };
        table.row([figure.clone(), paper, ours.clone(), verdict.claim_text().to_owned()]);
    }
    table
}

fn list(output: &mut Output) -> anyhow::Result<()> {
    let mut table = Table::new([Head::Name("study"), Head::Text("shows")]);
    for StudyEntry { name, shows, .. } in studies() {
        output.object(&ListedStudy { kind: "study", name, shows })?;
        table.row([*name, *shows].map(str::to_owned));
    }
    output.text(table.text())
}
