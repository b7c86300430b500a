//! `mete study`: the papers' figures, measured again on this machine.

use std::path::PathBuf;

use anyhow::Context;
use clap::ValueEnum;
use mete_study::Progress;
use mete_study::study::{Study, StudyOptions, log_cost, log_readers};
use serde::Serialize;

use crate::output::Output;
use crate::progress::Steps;
use crate::table::{Head, Table};
use crate::{bench, failure, interrupt};

/// Options of `mete study`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Which study
    #[arg(value_enum, hide_possible_values = true, required_unless_present = "list")]
    name: Option<Name>,
    /// List the studies, with what each shows
    #[arg(long)]
    list: bool,
    /// A fraction of the repetitions
    #[arg(long)]
    quick: bool,
    /// Print one JSON object a row: name, unit, median, min, bar, holds, note
    #[arg(long)]
    pub json: bool,
    /// Write data, plots and a page into a folder of this directory, too
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  mete study --list
  sudo mete study log-cost --quick
  sudo mete study log-readers --out studies
  mete study log-readers --json | jq -r '[.name, .median, .unit] | @tsv'";

// What each shows is said by --list; a help text here would make the whole help a long one.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    LogCost,
    LogReaders,
}

impl Name {
    fn text(self) -> &'static str {
        match self {
            Name::LogCost => "log-cost",
            Name::LogReaders => "log-readers",
        }
    }

    fn shows(self) -> &'static str {
        match self {
            Name::LogCost => "what a log operation costs on the path of a message (figures 5.1 to 5.3)",
            Name::LogReaders => "what it costs to read a log that is being written (figures 5.4 to 5.6)",
        }
    }

    fn run(self, options: StudyOptions, progress: &mut dyn Progress) -> Study {
        match self {
            Name::LogCost => log_cost(options, progress),
            Name::LogReaders => log_readers(options, progress),
        }
    }
}

/// One line of `--list --json`.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    shows: &'static str,
}

/// Measures, prints, and writes what was asked for.
pub fn run(options: &Options, output: &mut Output) -> anyhow::Result<()> {
    let Some(name) = options.name.filter(|_| !options.list) else { return list(output) };
    interrupt::listen()?;
    if let Some(directory) = &options.out {
        // Before the work, not after it.
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    }
    let study = name.run(StudyOptions { is_quick: options.quick }, &mut Steps::new());
    bench::print(&study.report, output)?;
    let Some(directory) = &options.out else { return Ok(()) };
    let folder = directory.join(study.folder);
    study.write_to(directory).with_context(|| format!("cannot write into {}", folder.display()))?;
    failure::say(&format!("data, plots and a page are in {}", folder.display()));
    Ok(())
}

fn list(output: &mut Output) -> anyhow::Result<()> {
    let mut table = Table::new([Head::Name("study"), Head::Text("shows")]);
    for &name in Name::value_variants() {
        output.object(&Listed { name: name.text(), shows: name.shows() })?;
        table.row([name.text(), name.shows()].map(str::to_owned));
    }
    output.text(table.text())
}
