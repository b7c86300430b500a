//! What `mete study` takes.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;

/// The names of the studies, in their order.
pub const STUDIES: [&str; 28] = [
    "log-cost",
    "log-readers",
    "vtrr-error",
    "vtrr-cost",
    "vtrr-micro",
    "vtrr-workloads",
    "live-shares",
    "live-latency",
    "live-micro",
    "live-ext",
    "live-groups",
    "live-processors",
    "live-cost",
    "live-worlds",
    "tavs-response",
    "tavs-starvation",
    "tavs-keep",
    "tavs-ratio",
    "tavs-correlation",
    "tavs-belief",
    "tavs-overhead",
    "loggers",
    "locks",
    "quanta",
    "migrations",
    "switch-cost",
    "noise",
    "timer",
];

/// Options of `mete study`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct StudyOptions {
    /// The study to run
    #[arg(value_parser = PossibleValuesParser::new(STUDIES),
        hide_possible_values = true, required_unless_present_any = ["list", "all"])]
    pub name: Option<String>,
    /// List the studies, with what each shows
    #[arg(long)]
    pub list: bool,
    /// Run every study and print one table: figure, paper's, ours, verdict
    #[arg(long, conflicts_with_all = ["name", "list"])]
    pub all: bool,
    /// Run with a fraction of the repetitions
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object for each row and each figure, with --all only for figures: see docs/json.md
    #[arg(long)]
    pub json: bool,
    /// Evaluate a trace that mete record has written, instead of recording
    #[arg(long, value_name = "DIR", conflicts_with_all = ["all", "list"])]
    pub trace: Option<PathBuf>,
    /// Also write data, plots and a page into a folder in this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  mete study --list
  mete study vtrr-error --quick
  sudo mete study log-cost --quick
  sudo mete study log-readers --out studies
  sudo mete study --all --quick   a verdict for each of the papers' figures
  sudo mete study quanta
  mete study quanta --trace trace   the same from a trace of mete record
  mete study log-readers --json | jq -r 'select(.kind == \"row\") | .median'

Ctrl-C ends the run with the results so far and exit status 130. --out writes all files of a study when
the study is complete. A study that was stopped writes nothing, and files that were there stay.";
