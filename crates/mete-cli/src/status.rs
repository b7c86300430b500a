//! `mete status`: how running schedulers and recorders are.

use mete_command::failure;
use mete_command::output::Output;
use mete_parameters::client::STATUS;
use mete_parameters::{FoundTree, ParameterFiles, running};
use mete_shares::parameters::REPORT;
use serde::Serialize;

/// Options of `mete status`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct StatusOptions {
    /// Print one JSON object a line: see docs/json.md
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo mete status
  cat /run/mete-shares/status    the same of one of them, through the file

This shows schedulers and recorders of this user that were started with --parameters.";

/// A running program.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "program")]
struct Program<'a> {
    pid: u32,
    parameters: &'a str,
}

/// A line of what it says of itself.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "status")]
struct Line<'a> {
    name: &'a str,
    value: &'a str,
}

/// Prints the status of each program.
pub fn run(output: &mut Output) -> anyhow::Result<()> {
    for tree in &running()? {
        // It may end at this moment, and the others are shown all the same.
        print(tree, output).unwrap_or_else(|error| failure::say(&format!("{error:#}")));
    }
    Ok(())
}

fn print(tree: &FoundTree, output: &mut Output) -> anyhow::Result<()> {
    let parameters = ParameterFiles::of(tree)?;
    let status = parameters.read(STATUS)?;
    let path = tree.path.to_string_lossy();
    output.verbatim(format!("parameters: {path}\n{status}"))?;
    output.object(&Program { pid: tree.pid, parameters: &path })?;
    let lines = status.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().try_for_each(|(name, value)| output.object(&Line { name, value }))?;
    // A recorder has none.
    let report = parameters.read(REPORT).unwrap_or_default();
    report.lines().try_for_each(|line| output.object_line(line))
}
