//! Runs of programs that the kernel left out, as the description lists them.

use mete_log::Ticks;
use serde::{Deserialize, Serialize};

/// Runs that the kernel left out between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedRuns {
    /// They were not before this time stamp of the trace's clock.
    pub since: Ticks,
    /// They were not after this time stamp.
    pub until: Ticks,
    /// The number of runs.
    pub runs: u64,
}

impl MissedRuns {
    /// Whether the runs may have been in this time, bounds included.
    pub(super) fn overlaps(&self, from: Option<Ticks>, until: Option<Ticks>) -> bool {
        until.is_none_or(|until| self.since <= until) && from.is_none_or(|from| self.until >= from)
    }

    /// Two stretches that follow each other, as one. The last of an odd number of stretches stays alone.
    pub(super) fn joined(pair: &[MissedRuns]) -> MissedRuns {
        let runs = pair.iter().map(|missed| missed.runs).sum();
        MissedRuns { since: pair[0].since, until: pair[pair.len() - 1].until, runs }
    }
}
