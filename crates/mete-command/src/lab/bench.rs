//! What `mete bench` takes.

use std::time::Duration;

use crate::value::duration;

/// Options of `mete bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchOptions {
    /// Measure only groups whose names contain NAME
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Measure with a sixth of the repetitions
    #[arg(long)]
    pub quick: bool,
    /// How long to measure the demo's requests at most, with and without logging; it ends sooner if the cost
    /// is known to within one percent. Two minutes if not given, four for the floor, or 15 s each with
    /// --quick
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub requests_for: Option<Duration>,
    /// Let the kernel move the demo's processes between processors, as in the demo itself; this adds noise
    #[arg(long)]
    pub requests_move: bool,
    /// Print one JSON object a row: see docs/json.md
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo mete bench           everything: at least three and a half minutes
  sudo mete bench --only demo --requests-for 20m   how logging slows requests
  sudo mete bench --only floor --requests-for 20m  the parts of that cost
  sudo mete bench --quick   a rough idea: at least half a minute
  mete bench --only user    rows of programs with probes, without root
  sudo mete bench --json | jq -r 'select(.holds == false) | .name'

Ratios are taken within one run, because other load changes absolute times. The column 95 % is a
confidence interval of the median. A bar holds if the whole interval meets it, and does not hold if no
part of the interval meets it. Otherwise, and where the interval reaches down to zero, the result is too
noisy to say. A bar that does not hold is a result like others: the exit status is 0. Ctrl-C ends the
run with the results so far and exit status 130.";
