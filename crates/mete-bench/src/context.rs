//! What all measurements of one run share.

use mete_base::progress::Progress;
use mete_measure::Reason;

use crate::bench::Options;

/// One periodic turn of a scheduler: it reads all logs, analyses them and decides.
pub type Turn = Box<dyn FnMut() -> Result<(), Reason>>;
/// Makes a scheduler ready that observes the system with 16 domains. When the turn is dropped, everything that it
/// holds is released.
pub type MakeScheduler = dyn Fn() -> Result<Turn, Reason>;

/// How a run is done, and to whom it reports.
pub(crate) struct Context<'a> {
    pub options: &'a Options,
    pub progress: &'a mut dyn Progress,
}

impl Context<'_> {
    /// The number of repetitions in this run, for `full` ones in a full run. A quick run has enough of them for a
    /// verdict, which takes six samples.
    pub fn rounds(&self, full: usize) -> usize {
        if self.options.is_quick { (full / 6).max(6) } else { full }
    }

    pub fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }
}
