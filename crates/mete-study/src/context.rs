//! What all measurements of one run share.

use std::time::Duration;

use crate::polling::MakeScheduler;
use crate::progress::Progress;
use crate::requests::MakeRequests;

/// How a run is to be done, and whom it tells.
pub(crate) struct Context<'a> {
    pub is_quick: bool,
    /// Makes the scheduler whose polling is measured.
    pub scheduler: Option<&'a MakeScheduler>,
    /// Sets the processes to work whose requests are counted.
    pub requests: Option<&'a MakeRequests>,
    /// For how long they may be counted.
    pub requests_for: Option<Duration>,
    pub progress: &'a mut dyn Progress,
}

impl Context<'_> {
    /// Repetitions in this run, of so many in a full one: enough for a verdict.
    pub fn rounds(&self, full: usize) -> usize {
        if self.is_quick { (full / 6).max(6) } else { full }
    }

    pub fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }
}
