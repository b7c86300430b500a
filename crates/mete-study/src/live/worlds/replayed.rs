//! The recording of a run, and its work done once more.

use mete_bench::recording::ScratchRecording;
use mete_convert::schedule_events;
use mete_measure::Reason;
use mete_policy::{DomainIndex, Nanoseconds, Share, by_name};
use mete_sim::ClientReport;
use mete_sim::metrics::Latencies;
use mete_sim::replay::{self, Pid, Recording, Settings, Under};

use super::super::stage::{Role, Run, Witness};
use super::{Numbers, Scene};

/// The events of a schedule (KLogger §9).
const EVENTS: [&str; 5] = ["SCHEDIN", "SCHEDOUT", "TRY_TO_WAKEUP", "ADD_TO_RUNQ", "FORK"];

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
        let mut recording = ScratchRecording::begin("scheduler", &EVENTS)?;
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
        let events = replay::events_of(events, self.place as u32, &self.pids);
        let mut recording = Recording::from_events(&events);
        let part_of = |pid| self.pids.iter().position(|known| *known == pid).map(|nth| &scene.parts[nth]);
        recording.domains = scene.shares.iter().filter_map(|share| Share::new(*share)).collect();
        for script in &mut recording.scripts {
            if let Some(part) = part_of(script.pid) {
                script.domain = DomainIndex::at(part.domain + 1);
            }
        }
        let is_sleeper: Vec<_> = recording
            .scripts
            .iter()
            .map(|script| part_of(script.pid).is_some_and(|part| part.role == Role::Sleeper))
            .collect();
        let again = again(&recording, policy, quantum)?;
        let mut parts = vec![0.0; scene.shares.len()];
        for (script, thread) in recording.scripts.iter().zip(&again) {
            if let Some(part) = parts.get_mut(script.domain.index().wrapping_sub(1)) {
                *part += thread.ran_ns.get() as f64;
            }
        }
        let all: f64 = parts.iter().sum();
        parts.iter_mut().for_each(|part| *part /= all.max(1.0));
        let live = run.parts().ok_or_else(|| Reason::new("the members have used no time"))?;
        Ok([
            Numbers { late_us: late_us(&replay::as_recorded(&recording), &is_sleeper), parts: live },
            Numbers { late_us: late_us(&again, &is_sleeper), parts },
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

/// Does the work of the first half once more, in which no thread is done with all that it did.
fn again(recording: &Recording, policy: &str, quantum_ns: Nanoseconds) -> Result<Vec<ClientReport>, Reason> {
    let entry = by_name(policy).ok_or_else(|| Reason::new(format!("there is no policy {policy}")))?;
    let until = Some(Nanoseconds::new(recording.duration_ns.get() / 2));
    let settings = Settings { processors: 1, quantum_ns, switch_ns: Nanoseconds::ZERO, seed: 1, until };
    let outcome = replay::run(recording, Under::Policy(entry), settings).map_err(Reason::from_error)?;
    Ok(outcome.threads)
}

/// The median and the 99th percentile of the sleepers' waits.
fn late_us(threads: &[ClientReport], is_sleeper: &[bool]) -> Option<[f64; 2]> {
    let mut all = Latencies::default();
    let sleepers = threads.iter().zip(is_sleeper).filter(|(_, is_sleeper)| **is_sleeper);
    sleepers.filter_map(|(thread, _)| thread.wake_to_run.as_ref()).for_each(|waits| all.add(waits));
    super::quantiles_us(&all)
}
