//! What `mete demo` takes.

use std::path::PathBuf;
use std::time::Duration;

use crate::value::{duration, within};

/// The most clients: the demo's memory has room for their counters.
pub const MOST_CLIENTS: usize = 56;
/// The most hogs for each processor: with many more, nothing else on the machine would run.
const HOGS_ON_A_PROCESSOR: usize = 8;

/// Options of `mete demo`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoOptions {
    /// How often the three stretches are run in turn
    #[arg(long, default_value_t = 5, value_parser = within::<u32>(1..=100))]
    pub rounds: u32,
    /// How long each stretch is measured
    #[arg(long, default_value = "3s", value_parser = duration)]
    pub stretch: Duration,
    /// How many clients talk to the drivers
    #[arg(long, default_value_t = 4, value_parser = some_clients)]
    pub clients: usize,
    /// How many processes only compute; if not given, one fewer than there are processors, and at most 16
    #[arg(long, value_parser = some_hogs)]
    pub hogs: Option<usize>,
    /// Log only the drivers, not the kernel
    #[arg(long)]
    pub no_kernel: bool,
    /// Where to write the report
    #[arg(long, default_value = "mete-demo.html", value_name = "FILE")]
    pub report: PathBuf,
    /// Print one JSON object a stretch instead of tables
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo mete demo                          ninety seconds; open mete-demo.html
  sudo mete demo --rounds 2 --stretch 1s  a quick look
  mete demo --no-kernel                   without root: only the drivers' logs
  sudo mete demo --json | jq .throughput  for scripts

Ctrl-C ends the demo with the results so far and exit status 130. A report is written if at least one
stretch is over.";

fn some_clients(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_CLIENTS).contains(number));
    number.ok_or_else(|| format!("the demo takes 1 to {MOST_CLIENTS} clients"))
}

/// A number of hogs. Each hog is in a session of its own, so it gets as much processor time as everything
/// together that runs in one terminal.
fn some_hogs(text: &str) -> Result<usize, String> {
    let most = HOGS_ON_A_PROCESSOR * std::thread::available_parallelism().map_or(1, usize::from);
    let number = text.parse().ok().filter(|number| (0..=most).contains(number));
    number.ok_or_else(|| format!("the demo takes 0 to {most} hogs, {HOGS_ON_A_PROCESSOR} for each processor"))
}
