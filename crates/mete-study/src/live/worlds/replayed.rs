//! The recording of a run, and its work done once more.

use mete_bench::recording::ScratchRecording;
use mete_convert::{SCHEDULE_EVENTS, schedule_events};
use mete_measure::Reason;
use mete_policy::{DomainIndex, Nanoseconds, Share, by_name};
use mete_sim::ClientReport;
use mete_sim::replay::{self, Pid, Recording, Settings, Under, events_of};

use super::super::stage::{Run, Witness};
use super::{Numbers, Scene, late_us, parts};

/// Records what the members of a run do while it is measured.
pub(super) struct Recorder {
    recording: ScratchRecording,
    place: usize,
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

    /// What was recorded, and what becomes of its work under the same policy.
    ///
    /// # Errors
    ///
    /// The recording cannot be read, or has nothing of the members.
    pub fn numbers(
        self,
        scene: &Scene,
        run: &Run,
        policy: &str,
        quantum: Nanoseconds,
    ) -> Result<[Numbers; 2], Reason> {
        let recorded = self.recording.end()?;
        let events = schedule_events(&recorded).map_err(Reason::from_error)?;
        let mut recording = Recording::from_events(&events_of(events, self.place as u32, &self.pids));
        recording.domains = scene.shares.iter().filter_map(|share| Share::new(*share)).collect();
        // There are events of members alone.
        let part_of = |pid| self.pids.iter().position(|known| *known == pid).map(|nth| &scene.parts[nth]);
        let members: Vec<_> = recording.scripts.iter().filter_map(|script| part_of(script.pid)).collect();
        for (script, part) in recording.scripts.iter_mut().zip(&members) {
            script.domain = DomainIndex::at(part.domain + 1);
        }
        let recorded = replay::as_recorded(&recording);
        let recorded = recorded.iter().zip(members.iter().copied());
        let again = again(&recording, policy, quantum)?;
        let again = again.iter().zip(members.iter().copied());
        let live = run.parts().ok_or_else(|| Reason::new("the members have used no time"))?;
        Ok([
            Numbers { late_us: late_us(recorded), parts: live },
            Numbers { late_us: late_us(again.clone()), parts: parts(again, scene.shares.len()) },
        ])
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

/// Does the work once more, and measures the half in the middle: at first the policy gets to know the threads, as it
/// had live before the recording began, and at the end each thread is done with what it did.
fn again(recording: &Recording, policy: &str, quantum_ns: Nanoseconds) -> Result<Vec<ClientReport>, Reason> {
    let entry = by_name(policy).ok_or_else(|| Reason::new(format!("there is no policy {policy}")))?;
    let quarter = Nanoseconds::new(recording.duration_ns.get() / 4);
    let measured = Some([quarter, 3 * quarter]);
    let settings = Settings { processors: 1, quantum_ns, switch_ns: Nanoseconds::ZERO, seed: 1, measured };
    let outcome = replay::run(recording, Under::Policy(entry), settings).map_err(Reason::from_error)?;
    Ok(outcome.threads)
}
