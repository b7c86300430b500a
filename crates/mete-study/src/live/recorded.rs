//! A recording of what the members of a run do.

use mete_bench::recording::ScratchRecording;
use mete_convert::{SCHEDULE_EVENTS, schedule_events};
use mete_measure::Reason;
use mete_sim::replay::{Pid, Recording, events_of};

use super::stage::Witness;

/// Records what the members of a run do while it is measured.
pub(super) struct Recorder {
    recording: ScratchRecording,
    place: usize,
    pids: Vec<Pid>,
}

/// What was recorded of them.
pub(super) struct Recorded {
    /// What each has done, by its number: of members alone.
    pub recording: Recording,
    /// The members' numbers, in the order of their parts.
    pids: Vec<Pid>,
}

impl Recorder {
    /// It records nothing yet: to load its programs takes long.
    ///
    /// # Errors
    ///
    /// What is missing.
    pub fn begin() -> Result<Recorder, Reason> {
        let mut recording = ScratchRecording::begin("scheduler", &SCHEDULE_EVENTS)?;
        recording.pause()?;
        Ok(Recorder { recording, place: 0, pids: Vec::new() })
    }

    /// What was recorded.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn recorded(self) -> Result<Recorded, Reason> {
        let recorded = self.recording.end()?;
        let events = schedule_events(&recorded).map_err(Reason::from_error)?;
        let recording = Recording::from_events(&events_of(events, self.place as u32, &self.pids));
        Ok(Recorded { recording, pids: self.pids })
    }
}

impl Recorded {
    /// The place of a member among the parts.
    pub fn place_of(&self, pid: Pid) -> Option<usize> {
        self.pids.iter().position(|known| *known == pid)
    }

    /// How long this member waited from each wake-up until it ran, in microseconds and in order of size.
    pub fn waits_us(&self, place: usize) -> Vec<f64> {
        let its = self.recording.scripts.iter().filter(|script| self.place_of(script.pid) == Some(place));
        let mut waits: Vec<_> =
            its.flat_map(|script| &script.waits_ns).map(|ns| ns.get() as f64 / 1e3).collect();
        waits.sort_by(f64::total_cmp);
        waits
    }
}

impl Witness for Recorder {
    fn begin(&mut self, place: usize, pids: &[i32]) -> Result<(), Reason> {
        self.place = place;
        self.pids = pids.iter().map(|pid| pid.unsigned_abs()).collect();
        self.recording.resume()
    }

    fn end(&mut self) -> Result<(), Reason> {
        self.recording.pause()
    }
}
