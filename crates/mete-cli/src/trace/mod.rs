//! `mete show` and `mete convert`: what is in a trace, for people and for other programs.

mod choice;
mod convert;
mod show;

pub use convert::{ConvertOptions, run_convert};
pub use show::{ShowOptions, show};

use std::process::ExitCode;

use mete_convert::Converted;
use mete_trace::description::Circumstances;

use crate::failure;

/// The exit status where a part of the trace cannot be read and everything else is there: other than a failure's,
/// which leaves nothing.
const DAMAGED: u8 = 3;

/// The exit status of what went through a trace to its end.
fn status(done: &Converted) -> ExitCode {
    if done.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) }
}

/// Says what keeps the gaps of a trace from being all that is missing.
fn tell_circumstances(circumstances: &Circumstances) {
    tell_missed_runs(circumstances.missed_runs);
    let garbled = circumstances.flush_threads.iter().filter_map(|thread| thread.garbled.as_ref());
    garbled.for_each(|why| failure::say(&garbled_buffer(why)));
}

/// That a buffer was garbled, and what it means.
pub fn garbled_buffer(why: &str) -> String {
    format!(
        "a program garbled a buffer, and what was in it is gone; how many events were lost there is not known: {why}"
    )
}

/// Says that something is missing which no gap shows, if so.
pub fn tell_missed_runs(runs: u64) {
    if runs > 0 {
        failure::say(&format!(
            "{runs} times an interrupt came in the middle of an event to the same place; what it would have recorded is missing, without a gap"
        ));
    }
}
