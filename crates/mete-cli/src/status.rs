//! `mete status`: how running schedulers and recorders are.

use std::thread;

use anyhow::bail;
use mete_command::failure;
use mete_command::output::Output;
use mete_command::table::number;
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

This shows schedulers and recorders of this user that were started with --parameters. The exit status is 1 if
none runs, or if one does not answer.";

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

/// Prints the status of each program. Fails if any has none.
pub fn run(output: &mut Output) -> anyhow::Result<()> {
    let trees = running()?;
    // Each may keep the one who asks waiting, so all are asked at once.
    let asked: Vec<_> = thread::scope(|scope| {
        let asking: Vec<_> = trees.iter().map(|tree| scope.spawn(|| ask(tree))).collect();
        asking
            .into_iter()
            .map(|asking| asking.join().unwrap_or_else(|_| bail!("it cannot be asked")))
            .collect()
    });
    let mut silent = 0_u64;
    for (tree, said) in trees.iter().zip(asked) {
        match said {
            // Where nothing can be written, no program is to blame.
            Ok(said) => print(tree, &said, output)?,
            Err(error) => {
                silent += 1;
                failure::say(&format!("process {}: {error:#}", tree.pid));
            }
        }
    }
    match silent {
        0 => Ok(()),
        silent => bail!("{silent} of {} did not answer", number(trees.len() as u64, "program")),
    }
}

/// What a program says of itself, in words, and in objects.
struct Said {
    status: String,
    report: String,
}

fn ask(tree: &FoundTree) -> anyhow::Result<Said> {
    let parameters = ParameterFiles::of(tree)?;
    // A recorder has no report.
    Ok(Said { status: parameters.read(STATUS)?, report: parameters.read(REPORT).unwrap_or_default() })
}

fn print(tree: &FoundTree, Said { status, report }: &Said, output: &mut Output) -> anyhow::Result<()> {
    let path = tree.path.to_string_lossy();
    output.verbatim(format!("parameters: {path}\n{status}"))?;
    output.object(&Program { pid: tree.pid, parameters: &path })?;
    let lines = status.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().try_for_each(|(name, value)| output.object(&Line { name, value }))?;
    report.lines().try_for_each(|line| output.object_line(line))
}
