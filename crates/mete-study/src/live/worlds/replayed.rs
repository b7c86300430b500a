//! The recording of a run, and its work done once more.

use mete_bench::recording::ScratchRecording;
use mete_convert::schedule_events;
use mete_measure::Reason;
use mete_policy::{DomainIndex, Nanoseconds, Share, by_name};
use mete_sim::ClientReport;
use mete_sim::metrics::Latencies;
use mete_sim::replay::{self, Pid, Recording, Settings, Under, events_of};

use super::super::stage::{Part, Role, Run, Witness};
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
        let mut recording = Recording::from_events(&events_of(events, self.place as u32, &self.pids));
        let part_of = |pid| self.pids.iter().position(|known| *known == pid).map(|nth| scene.parts[nth]);
        let parts: Vec<_> = recording.scripts.iter().map(|script| part_of(script.pid)).collect();
        recording.domains = scene.shares.iter().filter_map(|share| Share::new(*share)).collect();
        for (script, part) in recording.scripts.iter_mut().zip(&parts) {
            script.domain = part.map_or(DomainIndex::ROOT, |part| DomainIndex::at(part.domain + 1));
        }
        let again = again(&recording, policy, quantum)?;
        let live = run.parts().ok_or_else(|| Reason::new("the members have used no time"))?;
        Ok([
            Numbers { late_us: late_us(&replay::as_recorded(&recording), &parts), parts: live },
            Numbers { late_us: late_us(&again, &parts), parts: had(&again, &parts, scene.shares.len()) },
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

/// The median and the 99th percentile of the sleepers' waits.
fn late_us(threads: &[ClientReport], parts: &[Option<Part>]) -> Option<[f64; 2]> {
    let mut all = Latencies::default();
    for (thread, part) in threads.iter().zip(parts) {
        let is_sleeper = part.is_some_and(|part| part.role == Role::Sleeper);
        if let Some(waits) = thread.wake_to_run.as_ref().filter(|_| is_sleeper) {
            all.add(waits);
        }
    }
    super::quantiles_us(&all)
}

/// The part of all domains' time that each had.
fn had(threads: &[ClientReport], parts: &[Option<Part>], domains: usize) -> Vec<f64> {
    let mut had = vec![0.0; domains];
    for (thread, part) in threads.iter().zip(parts) {
        if let Some(part) = part {
            had[part.domain] += thread.ran_ns.get() as f64;
        }
    }
    let all: f64 = had.iter().sum();
    had.iter().map(|had| had / all.max(1.0)).collect()
}
