//! `mete set` and `mete get`: the parameters of a running recorder or scheduler.
//!
//! They are found in the mount table, where one that has ended leaves nothing.

use std::path::PathBuf;

use mete_command::output::Output;
use mete_parameters::chosen;
use mete_parameters::client::is_name;
use serde::Serialize;

/// Options of `mete set`.
#[derive(Debug, clap::Args)]
#[command(after_help = SET_EXAMPLES)]
pub struct SetOptions {
    #[command(flatten)]
    which: WhichRecorder,
    /// The parameters to set, in this order
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = assignment)]
    assignments: Vec<(String, String)>,
}

/// Options of `mete get`.
#[derive(Debug, clap::Args)]
#[command(after_help = GET_EXAMPLES)]
pub struct GetOptions {
    #[command(flatten)]
    which: WhichRecorder,
    /// Print one JSON object for each parameter: see docs/json.md
    #[arg(long)]
    pub json: bool,
    /// The parameters to print; without any, all that can be set
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

const SET_EXAMPLES: &str = "\
Examples:
  sudo mete set enable=0
  sudo mete set SCHEDIN=1 SCHEDOUT=1 TRY_TO_WAKEUP=0
  sudo mete set --recorder trace lowwater=25
  sudo mete set shares/web=3         the share of a domain of mete schedule
  sudo mete set policy=stride        its policy, one outside the kernel
  sudo mete set quantum_ms=8         its quantum, by sched_ext
  echo 0 > /run/recorder/enable      the same through the file

This works for recorders and schedulers that were started with --parameters. All parameters are described in
docs/parameters.md. The exit status is 1 if a value is refused; those before it on the command line are set.";

const GET_EXAMPLES: &str = "\
Examples:
  sudo mete get
  sudo mete get enable buffer_size
  sudo mete get benchmarks/SCHEDIN   what logging that event costs, in ns
  cat /run/recorder/status           the same through the file

The exit status is 1 if one cannot be read; those before it are printed.";

/// Which recorder.
#[derive(Debug, clap::Args)]
struct WhichRecorder {
    /// The recorder or scheduler, if several run: the directory of its parameters or of its trace, or its
    /// process id
    #[arg(short, long, visible_alias = "scheduler", value_name = "DIR|PID")]
    recorder: Option<PathBuf>,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if is_name(name) && !value.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it takes a name, =, and a value, such as enable=0".to_owned()),
    }
}

/// Sets parameters.
pub fn set(options: &SetOptions) -> anyhow::Result<()> {
    let parameters = chosen(options.which.recorder.as_deref())?;
    options.assignments.iter().try_for_each(|(name, value)| Ok(parameters.set(name, value)?))
}

/// One line of JSON.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "parameter")]
struct Parameter<'a> {
    name: &'a str,
    value: &'a str,
}

/// Prints parameters.
pub fn get(options: &GetOptions, output: &mut Output) -> anyhow::Result<()> {
    let parameters = chosen(options.which.recorder.as_deref())?;
    let names = if options.names.is_empty() { parameters.settings()? } else { options.names.clone() };
    for name in &names {
        let value = parameters.read(name)?;
        let value = value.trim_end();
        output.object(&Parameter { name, value })?;
        let is_list = value.contains('\n');
        output.verbatim(if is_list { value.to_owned() } else { format!("{name}={value}") })?;
    }
    Ok(())
}
