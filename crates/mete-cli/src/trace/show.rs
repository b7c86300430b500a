//! `mete show`: a trace for people.

use std::io::stdout;
use std::process::ExitCode;

use mete_command::{interrupt, output};
use mete_convert::{Format, JsonLines, Text, convert_while};

use super::choice::TraceChoice;
use super::{status, tell_circumstances, tell_errors};

/// Options of `mete show`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowOptions {
    #[command(flatten)]
    pub choice: TraceChoice,
    /// Print JSON lines: see docs/json.md
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  mete show trace
  mete show trace --event SCHEDIN,SCHEDOUT --processor 0
  mete show trace --from 1283.5 --until 1284 --without-marks
  mete show trace --process 1073
  mete show trace --json | jq -r 'select(.kind == \"event\") | .fields.pid'

A line has the time (CLOCK_MONOTONIC, in seconds), the processor, the event's serial number there, the
event, and its fields. Lines that begin with -- say what is missing. The event MISSED_RUNS says that the
kernel left out programs between the time in its field since and its own time. Events that programs record
themselves, beside the kernel's, have serial numbers of their own: [1/3] is processor 1, and file 3 of the
trace, within which they count.

The exit status is 3 if a part of the trace cannot be read; everything else is shown all the same.";

/// Prints a trace.
pub fn show(options: &ShowOptions) -> anyhow::Result<ExitCode> {
    let (trace, filter) = options.choice.open()?;
    interrupt::listen()?;
    let out = stdout().lock();
    let mut format: Box<dyn Format + '_> =
        if options.json { Box::new(JsonLines::new(out)) } else { Box::new(Text::new(out)) };
    let done = convert_while(&trace, filter, &mut *format, &mut |_| interrupt::go_on());
    let done = done.map_err(|error| output::failed(&error))?;
    tell_circumstances(trace.description());
    tell_errors(&done);
    Ok(if done.is_whole { status(&done) } else { interrupt::ended(false) })
}
