//! The flight recorder: the newest events stay in memory, and become a trace when a signal asks for it, when
//! an awaited event occurs, and at the end.

use std::path::PathBuf;

use crate::error::RecordingError;
use crate::notice::{DumpReason, Notice};
use crate::origin::{EventRecorder, Origin};
use crate::plan::Plan;
use crate::summary::{Ended, Summary};

/// Where memory is written to, and when.
pub struct FlightDumps {
    directory: PathBuf,
    made: Vec<PathBuf>,
    /// How many occurrences of awaited events earlier dumps have answered.
    answered: u64,
    /// The number of occurrences that are still awaited. The last one ends the recording, which writes its
    /// dump. `None` if no event is awaited.
    left: Option<u32>,
}

impl FlightDumps {
    /// The first dump goes into the trace's directory; later ones stand beside it.
    pub fn new(plan: &Plan) -> Option<FlightDumps> {
        let flight = plan.flight.as_ref()?;
        let left = (!flight.dump_on.is_empty()).then_some(flight.ends_at_occurrence);
        Some(FlightDumps { directory: plan.directory.clone(), made: Vec::new(), answered: 0, left })
    }

    /// Writes what a signal asked for, and what is due because of an event.
    pub fn dump_if_due(
        &mut self,
        is_asked: bool,
        recorder: &mut EventRecorder,
        origin: &Origin,
    ) -> Option<Notice> {
        // The last one is the end of the recording, which writes it.
        let is_due = self.left.is_some_and(|left| left > 1) && self.has_occurred(recorder);
        if !is_asked && !is_due {
            return None;
        }
        let reason = if is_due { DumpReason::Event } else { DumpReason::Signal };
        let dumped = self.dump(recorder, origin);
        if is_due {
            // A dump that failed is not tried again before the event occurs again.
            self.left = self.left.map(|left| left - 1);
            self.answered = recorder.seen();
        }
        Some(match dumped {
            Ok(directory) => Notice::Dumped { directory, reason },
            Err(error) => Notice::NotDumped(error),
        })
    }

    fn has_occurred(&self, recorder: &EventRecorder) -> bool {
        recorder.seen() > self.answered
    }

    /// Whether the last occurrence that is awaited has come.
    pub fn is_over(&self, recorder: &EventRecorder) -> bool {
        self.left == Some(1) && self.has_occurred(recorder)
    }

    /// Writes what is kept, and goes on.
    pub fn dump(&mut self, recorder: &mut EventRecorder, origin: &Origin) -> Result<PathBuf, RecordingError> {
        // Rows of programs wait for a moment before they are in a buffer, and would be missing in the dump.
        origin.catch_up();
        let directory = self.next_directory();
        recorder.dump(&directory)?;
        self.made.push(directory.clone());
        Ok(directory)
    }

    /// Writes what is kept at the end. The summary is there also where it cannot be written.
    pub fn end(mut self, mut recorder: EventRecorder) -> Result<Ended, RecordingError> {
        let directory = self.next_directory();
        recorder.settle();
        // Asked now, because the recorder is gone after a dump that fails.
        let kept = recorder.kept();
        match recorder.stop_and_dump(&directory) {
            Ok(_) => {
                self.made.push(directory);
                Ok(Ended { summary: Summary::of_dumps(&self.made)?, stopped: Ok(()) })
            }
            Err(error) => {
                let summary = Summary::of_unwritten(&directory, kept, &self.made);
                Ok(Ended { summary, stopped: Err(error) })
            }
        }
    }

    /// `trace`, `trace.2`, `trace.3`
    fn next_directory(&self) -> PathBuf {
        match self.made.len() {
            0 => self.directory.clone(),
            // A recording before this one may have left dumps of these names.
            made => (made + 1..)
                .map(|nth| self.nth_directory(nth))
                .find(|directory| !directory.exists())
                .unwrap_or_else(|| self.nth_directory(made + 1)),
        }
    }

    fn nth_directory(&self, nth: usize) -> PathBuf {
        let mut name = self.directory.clone().into_os_string();
        name.push(format!(".{nth}"));
        PathBuf::from(name)
    }
}
