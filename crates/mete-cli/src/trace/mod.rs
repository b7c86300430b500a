//! `mete show` and `mete convert`: what is in a trace, for people and for other programs.

mod choice;
mod convert;
mod show;

pub use convert::{ConvertOptions, run_convert};
pub use show::{ShowOptions, show};

use std::process::ExitCode;

use mete_convert::Converted;
use mete_trace::description::{Circumstances, Converter};
use mete_trace::{MissedRuns, TraceDescription};

use crate::failure;

/// The exit status where a part of the trace cannot be read and everything else is there: other than a failure's,
/// which leaves nothing.
const DAMAGED: u8 = 3;

/// The exit status of what went through a trace to its end.
fn status(done: &Converted) -> ExitCode {
    if done.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) }
}

/// Says what could not be read: the first parts, and how many there are.
fn tell_errors(done: &Converted) {
    const MOST: usize = 20;
    done.errors.iter().take(MOST).for_each(|error| failure::say(&error.to_string()));
    let more = done.errors.len().saturating_sub(MOST) as u64 + done.more_errors;
    if more > 0 {
        failure::say(&format!("{more} more parts of the trace cannot be read"));
    }
}

/// Says what keeps the gaps of a trace from being all that is missing.
fn tell_circumstances(description: &TraceDescription) {
    let Circumstances { missed_runs, missed, flush_threads, .. } = &description.circumstances;
    tell_missed_runs(*missed_runs, &when(missed, description.clock.converter().as_ref()));
    let garbled = flush_threads.iter().filter_map(|thread| thread.garbled.as_ref());
    garbled.for_each(|why| failure::say(&garbled_buffer(why)));
}

/// When that was, as far as it is known: `, between 12.300000000 and 12.400000000 s`
fn when(missed: &[MissedRuns], clock: Option<&Converter>) -> String {
    const MOST: usize = 3;
    let Some(clock) = clock.filter(|_| !missed.is_empty()) else { return String::new() };
    let seconds = |ticks| {
        let ns = clock.ns(ticks);
        format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    };
    let stretch = |missed: &MissedRuns| format!("{} and {} s", seconds(missed.since), seconds(missed.until));
    let stretches: Vec<_> = missed.iter().take(MOST).map(stretch).collect();
    let more = match missed.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(", and in {more} more stretches: see the events MISSED_RUNS"),
    };
    format!(", between {}{more}", stretches.join(", between "))
}

/// That a buffer was garbled, and what it means.
pub fn garbled_buffer(why: &str) -> String {
    format!(
        "a program garbled a buffer, and what was in it is gone; how many events were lost there is not known: {why}"
    )
}

/// Says that something is missing which no gap shows, if so, and when that was, if that is known.
pub fn tell_missed_runs(runs: u64, when: &str) {
    if runs > 0 {
        failure::say(&format!(
            "{runs} times an interrupt came in the middle of an event to the same place; what it would have recorded is missing, without a gap{when}"
        ));
    }
}
