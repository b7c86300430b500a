//! What all measurements of one run share: what was asked for, and the progress that is shown.

use std::time::Duration;

use mete_base::progress::Progress;
use mete_demo::Placement;
use mete_measure::Reason;

/// One periodic turn of a scheduler: it reads all logs, analyses them and decides.
pub type Turn = Box<dyn FnMut() -> Result<(), Reason>>;
/// Makes a scheduler ready that observes the system with 16 domains. When the turn is dropped, everything
/// that it holds is released.
pub type MakeScheduler = dyn Fn() -> Result<Turn, Reason>;

/// What to measure and how thoroughly.
#[derive(Default)]
pub struct Options {
    /// Measure only groups whose name contains this; see [`groups`](crate::groups).
    pub only: Option<String>,
    /// A sixth of the repetitions.
    pub is_quick: bool,
    /// The scheduler whose polling is measured. Without one, a bare reader of the kernel's logs is measured.
    pub scheduler: Option<Box<MakeScheduler>>,
    /// Whether the demo's processes stay on their processors while their requests are counted, with logging
    /// and without. If not given, they are not started, and their rows say so.
    pub request_placement: Option<Placement>,
    /// The longest time for which requests are counted. Counting ends earlier once the cost of logging is
    /// known to within one percent.
    pub requests_for: Option<Duration>,
}

impl Options {
    pub(crate) fn wants(&self, group: &str) -> bool {
        self.only.as_ref().is_none_or(|only| group.contains(only.as_str()))
    }
}

/// How a run is done, and to whom it reports.
pub(crate) struct Context<'a> {
    pub options: &'a Options,
    pub progress: &'a mut dyn Progress,
}

impl Context<'_> {
    /// The number of repetitions in this run, for `full` ones in a full run. A quick run has enough of them
    /// for a verdict, which takes six samples.
    pub fn rounds(&self, full: usize) -> usize {
        if self.options.is_quick { (full / 6).max(6) } else { full }
    }

    pub fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }
}
