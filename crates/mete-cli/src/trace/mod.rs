//! `mete show` and `mete convert`: a trace as text for people, and in the formats of other programs.

mod choice;
mod convert;
mod show;

use std::process::ExitCode;

use mete_command::failure;
use mete_command::status::INCOMPLETE;
use mete_convert::Converted;
use mete_trace::description::{Circumstances, Converter};
use mete_trace::{MissedRuns, TraceDescription};

pub use convert::{ConvertOptions, run_convert};
pub use show::{ShowOptions, show};

/// The exit status after a trace was read to its end.
fn status(done: &Converted) -> ExitCode {
    if done.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) }
}

/// Says which parts could not be read: the first ones, and how many more there are.
fn tell_errors(done: &Converted) {
    const MOST: usize = 20;
    done.errors.iter().take(MOST).for_each(|error| failure::say(&error.to_string()));
    let more = done.errors.len().saturating_sub(MOST) as u64 + done.more_errors;
    if more > 0 {
        failure::say(&format!("{more} more parts of the trace cannot be read"));
    }
}

/// Says what is missing in addition to the gaps that the trace itself shows.
fn tell_circumstances(description: &TraceDescription) {
    let Circumstances { missed_runs, missed, flush_threads, .. } = &description.circumstances;
    tell_missed_runs(*missed_runs, &when(missed, description.clock.converter().as_ref()));
    let garbled = flush_threads.iter().filter_map(|thread| thread.garbled.as_ref());
    garbled.for_each(|why| failure::say(&garbled_buffer(why)));
}

/// When programs of the kernel were left out, as far as it is known:
/// `, between 12.300000000 and 12.400000000 s`.
fn when(missed: &[MissedRuns], clock: Option<&Converter>) -> String {
    const MOST: usize = 3;
    let Some(clock) = clock.filter(|_| !missed.is_empty()) else { return String::new() };
    let seconds = |ticks| {
        let ns = clock.ns(ticks);
        format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    };
    let stretches = missed
        .iter()
        .take(MOST)
        .map(|missed| format!("{} and {} s", seconds(missed.since), seconds(missed.until)));
    let stretches: Vec<_> = stretches.collect();
    let more = match missed.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(", and in {more} more stretches: see the events MISSED_RUNS"),
    };
    format!(", between {}{more}", stretches.join(", between "))
}

/// The sentence that a buffer was garbled, and what this means.
pub fn garbled_buffer(why: &str) -> String {
    format!(
        "a program garbled a buffer, and its contents are lost; how many events were in it is not known: {why}"
    )
}

/// Says how many events are missing that no gap shows, if there are any, and when that was, if it is known.
pub fn tell_missed_runs(runs: u64, when: &str) {
    if runs > 0 {
        failure::say(&format!(
            "{runs} times an interrupt came in the middle of recording an event and reached the same point; what it \
             would have recorded is missing, without a gap{when}"
        ));
    }
}
