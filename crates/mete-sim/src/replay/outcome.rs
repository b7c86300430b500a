//! What became of a recording's threads under a policy.

use mete_policy::{ClientId, Entry, Nanoseconds, Policy, ProcessorId, Setup, Share};

use super::model::Replay;
use super::recording::Recording;
use crate::host::{Hardware, Host, Stalled};
use crate::metrics::{Fluid, Latencies};
use crate::recorder::Recorder;
use crate::report::ClientReport;
use crate::watch::Watch;

/// How a recording is run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many processors there are; [`Recording::processors`] for as many as there were.
    pub processors: ProcessorId,
    /// The policy's quantum, in nanoseconds.
    pub quantum_ns: Nanoseconds,
    /// What a context switch costs, in nanoseconds.
    pub switch_ns: Nanoseconds,
    /// Where randomised policies begin.
    pub seed: u64,
}

/// The same work under one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The policy's name.
    pub policy: &'static str,
    /// When the last thread was done, in nanoseconds since the start.
    pub end_ns: Nanoseconds,
    /// The threads, in the order of the recording's scripts.
    pub threads: Vec<ClientReport>,
}

/// All threads' waits from waking to running, together.
#[must_use]
pub fn all_waits<'a>(threads: impl IntoIterator<Item = &'a ClientReport>) -> Latencies {
    let mut all = Latencies::default();
    threads.into_iter().filter_map(|thread| thread.wake_to_run.as_ref()).for_each(|waits| all.add(waits));
    all
}

/// What the recording itself says of the same figures: waits from waking to running, and work.
#[must_use]
pub fn as_recorded(recording: &Recording) -> Vec<ClientReport> {
    let of = |script: &super::Script| {
        let mut waits = Latencies::default();
        script.waits_ns.iter().for_each(|&wait_ns| waits.record(wait_ns));
        ClientReport {
            name: script.name.clone(),
            ran_ns: script.service_ns(),
            wakes: script.waits_ns.len() as u64,
            wake_to_run: (waits.count() > 0).then_some(waits),
            ..ClientReport::default()
        }
    };
    recording.scripts.iter().map(of).collect()
}

/// Runs a recording to its end under a policy.
///
/// # Errors
///
/// [`Stalled`] if the recording does not let time go on: more than a million steps at one instant.
pub fn run(recording: &Recording, policy: &Entry, settings: Settings) -> Result<Outcome, Stalled> {
    let clients = recording.scripts.len();
    let setup = Setup {
        processors: settings.processors.max(1),
        quantum_ns: settings.quantum_ns,
        seed: settings.seed,
        ..Setup::for_clients(clients as u32)
    };
    let hardware =
        Hardware { processors: setup.processors, switch_ns: settings.switch_ns, ..Hardware::default() };
    let watch = Watch::new(clients, hardware, fluid(clients, setup.processors), Nanoseconds::MAX);
    let watch = (watch, End::default());
    let mut host = Replay::host(recording, hardware, (policy.make)(&setup), watch);
    run_to_the_end(&mut host, clients, recording.duration_ns)?;
    let ran: Vec<_> = (0..clients).map(|client| host.ran_ns(client as ClientId)).collect();
    let (watch, end) = host.into_recorder();
    let named = watch.into_reports().zip(&recording.scripts).zip(ran);
    let threads =
        named.map(|((report, script), ran_ns)| ClientReport { name: script.name.clone(), ran_ns, ..report });
    Ok(Outcome { policy: policy.name, end_ns: end.0, threads: threads.collect() })
}

/// Equal shares for all.
fn fluid(clients: usize, processors: ProcessorId) -> Fluid {
    let mut fluid = Fluid::new(processors);
    (0..clients).for_each(|_| fluid.add(0, Share::ONE));
    fluid
}

/// In stretches, because nobody can say beforehand how long it takes.
fn run_to_the_end<P: Policy, R: Recorder>(
    host: &mut Host<P, Replay<'_>, R>,
    clients: usize,
    stretch_ns: Nanoseconds,
) -> Result<(), Stalled> {
    while !(0..clients).all(|client| host.model().is_done(client as ClientId)) {
        host.run_until(host.now_ns().saturating_add(stretch_ns.max(1_000_000)))?;
    }
    Ok(())
}

/// When the last client was over.
#[derive(Default)]
struct End(Nanoseconds);

impl Recorder for End {
    fn exited(&mut self, _client: ClientId, now_ns: Nanoseconds) {
        self.0 = now_ns;
    }
}
