//! What all measurements of one run share.

use crate::polling::MakeScheduler;
use crate::progress::Progress;

/// How a run is to be done, and whom it tells.
pub(crate) struct Context<'a> {
    pub is_quick: bool,
    /// Makes the scheduler whose polling is measured.
    pub scheduler: Option<&'a MakeScheduler>,
    pub progress: &'a mut dyn Progress,
}

impl Context<'_> {
    /// Repetitions in this run, of so many in a full one.
    pub fn rounds(&self, full: usize) -> usize {
        if self.is_quick { (full / 6).max(5) } else { full }
    }

    pub fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }
}
