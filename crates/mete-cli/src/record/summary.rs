//! What is printed about a recording at its end.

use std::path::Path;

use mete_base::size;
use mete_command::failure;
use mete_command::output::Output;
use mete_record::{Ended, Summary};

use crate::trace;

/// Prints the summary of a recording, also if the end of the recording could not be written. That is an error
/// then.
pub fn tell(ended: Ended, output: &mut Output) -> anyhow::Result<()> {
    let Ended { summary, stopped } = ended;
    print(&summary, output)?;
    stopped?;
    Ok(summary.check_written()?)
}

fn print(summary: &Summary, output: &mut Output) -> anyhow::Result<()> {
    let Summary { trace: directory, passed_s, records, missed_runs, bytes, .. } = summary;
    // A flight recorder that finds no room on the disk leaves no trace.
    let is_there = Path::new(directory).exists();
    let (when, see) = match is_there {
        true => ("; mete show tells when", format!(" See: mete show {directory}")),
        false => ("", String::new()),
    };
    trace::tell_missed_runs(*missed_runs, when);
    summary.garbled.iter().for_each(|why| failure::say(&trace::garbled_buffer(why)));
    output.object(summary)?;
    let (written, loss) = (size::decimal(*bytes), loss(summary));
    output.text(format!("{records} records in {passed_s:.1} s, {written}, {loss}.{see}"))
}

fn loss(summary: &Summary) -> String {
    match (summary.lost, summary.unwritten) {
        (0, _) => "none lost".to_owned(),
        (lost, 0) => format!("{lost} events lost"),
        (lost, unwritten) => format!("{lost} events lost, {unwritten} of which could not be written"),
    }
}
