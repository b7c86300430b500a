//! `mete status`: how running schedulers and recorders are.

use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use anyhow::bail;
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

/// How long a program may take to answer.
const LIMIT: Duration = Duration::from_secs(3);

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

/// What is asked of these files, if there is an answer in time. The kernel lets one who reads wait for ever where the program
/// behind the files is stopped; the thread that does so goes with this process.
fn within<T: Send + 'static>(
    limit: Duration,
    parameters: ParameterFiles,
    ask: impl FnOnce(&ParameterFiles) -> T + Send + 'static,
) -> Option<T> {
    let (tell, hear) = sync_channel(1);
    thread::spawn(move || tell.send(ask(&parameters)));
    hear.recv_timeout(limit).ok()
}

fn print(tree: &FoundTree, output: &mut Output) -> anyhow::Result<()> {
    let path = tree.path.to_string_lossy();
    let Some(read) = within(LIMIT, ParameterFiles::of(tree)?, |parameters| {
        // A recorder has no report.
        (parameters.read(STATUS), parameters.read(REPORT).unwrap_or_default())
    }) else {
        bail!("process {} does not answer for {path}: it is stopped, or very busy", tree.pid);
    };
    let (status, report) = (read.0?, read.1);
    output.verbatim(format!("parameters: {path}\n{status}"))?;
    output.object(&Program { pid: tree.pid, parameters: &path })?;
    let lines = status.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().try_for_each(|(name, value)| output.object(&Line { name, value }))?;
    report.lines().try_for_each(|line| output.object_line(line))
}
