//! The flight recorder: the newest events stay in memory, and become a trace when somebody asks, when what is waited
//! for has happened, and at the end.

use std::path::PathBuf;

use mete_kernel::record::Areas;
use mete_trace::{RecordError, Recorder, Together};

use super::Options;
use super::origin::Origin;
use super::summary::Summary;
use crate::{failure, interrupt};

/// Where memory is written to, and when.
pub struct Dumps {
    directory: PathBuf,
    made: Vec<PathBuf>,
    /// Occurrences of awaited events that a dump has answered.
    answered: u64,
    /// Dumps that such occurrences still are to bring, the one at the end among them; `None` if none is awaited.
    left: Option<u32>,
}

impl Dumps {
    /// The first goes into the trace's directory; later ones beside it.
    pub fn new(options: &Options) -> Dumps {
        let directory = options.output.clone();
        let left = (!options.dump_on.is_empty()).then_some(options.dumps);
        Dumps { directory, made: Vec::new(), answered: 0, left }
    }

    /// Writes what was asked for by a signal, and what waited for an event; says where.
    pub fn look(&mut self, recorder: &mut Recorder<Together<Areas>>, origin: &Origin) -> Option<String> {
        let is_asked = interrupt::take_dump_request();
        // The last one is the end.
        let is_due = self.left.is_some_and(|left| left > 1) && self.has_occurred(recorder);
        if !is_asked && !is_due {
            return None;
        }
        let why = if is_due { "the event has occurred" } else { "SIGUSR1" };
        let said = match self.now(recorder, origin) {
            Ok(place) => format!("what was kept is in {} now ({why})", place.display()),
            Err(error) => failure::sentence(&error),
        };
        if is_due {
            // One that failed is not tried again before the event occurs again.
            self.left = self.left.map(|left| left - 1);
            self.answered = recorder.seen();
        }
        Some(said)
    }

    fn has_occurred(&self, recorder: &Recorder<Together<Areas>>) -> bool {
        recorder.seen() > self.answered
    }

    /// Whether the last occurrence that is waited for has come.
    pub fn is_over(&self, recorder: &Recorder<Together<Areas>>) -> bool {
        self.left == Some(1) && self.has_occurred(recorder)
    }

    /// Writes what is kept, and goes on.
    pub fn now(
        &mut self,
        recorder: &mut Recorder<Together<Areas>>,
        origin: &Origin,
    ) -> anyhow::Result<PathBuf> {
        origin.catch_up();
        let place = self.place();
        recorder.dump(&place)?;
        self.made.push(place.clone());
        Ok(place)
    }

    /// Writes what is kept at the end; what is told of it also where it cannot be written.
    pub fn end(
        mut self,
        mut recorder: Recorder<Together<Areas>>,
    ) -> anyhow::Result<(Summary, Result<(), RecordError>)> {
        let place = self.place();
        recorder.settle();
        let kept = recorder.kept();
        match recorder.stop_and_dump(&place) {
            Ok(_) => {
                self.made.push(place);
                Ok((Summary::of_dumps(&self.made)?, Ok(())))
            }
            Err(error) => Ok((Summary::of_unwritten(&place, kept, &self.made), Err(error))),
        }
    }

    /// `trace`, `trace.2`, `trace.3`
    fn place(&self) -> PathBuf {
        let nth = |nth: usize| {
            let mut name = self.directory.clone().into_os_string();
            name.push(format!(".{nth}"));
            PathBuf::from(name)
        };
        match self.made.len() {
            0 => self.directory.clone(),
            made => (made + 1..).map(nth).find(|place| !place.exists()).unwrap_or_else(|| nth(made + 1)),
        }
    }
}
