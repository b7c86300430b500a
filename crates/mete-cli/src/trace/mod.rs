//! `mete show` and `mete convert`: what is in a trace, for people and for other programs.

mod choice;
mod convert;
mod show;

pub use convert::{ConvertOptions, run_convert};
pub use show::{ShowOptions, show};

use crate::failure;

/// Says that something is missing which no gap shows, if so.
pub fn tell_missed_runs(runs: u64) {
    if runs > 0 {
        failure::say(&format!(
            "{runs} times an interrupt came in the middle of an event to the same place; what it would have recorded is missing, without a gap"
        ));
    }
}
