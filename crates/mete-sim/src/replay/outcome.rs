//! What became of a recording's threads under a policy.

use mete_policy::{ClientId, DomainIndex, Entry, Nanoseconds, Policy, Setup, Share};

use super::linux::{Kernel, Linux};
use super::model::Replay;
use super::recording::{Recording, Script};
use crate::client_report::ClientReport;
use crate::host::{Hardware, Host, Stalled};
use crate::metrics::{Fluid, Latencies};
use crate::recorder::Recorder;
use crate::watch::Watch;

/// How a recording is run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many processors there are; [`Recording::processors`] is the number on the recorded machine.
    pub processors: u16,
    /// The policy's quantum, in nanoseconds.
    pub quantum_ns: Nanoseconds,
    /// What a context switch costs, in nanoseconds.
    pub switch_ns: Nanoseconds,
    /// The seed of randomised policies.
    pub seed: u64,
    /// From when to when it is measured, if not from the beginning until all work is done. Policies get to know
    /// threads at first, and at the end each thread has done what it did, so what they have in between says more.
    pub measured: Option<[Nanoseconds; 2]>,
}

/// The same work under one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The policy's name.
    pub policy: &'static str,
    /// When the last thread was done, in nanoseconds since the start.
    pub end_ns: Nanoseconds,
    /// How long each processor worked, in nanoseconds.
    pub busy_ns: Vec<Nanoseconds>,
    /// The threads, in the order of the recording's scripts.
    pub threads: Vec<ClientReport>,
}

/// The waits of all threads, from waking to running, together.
pub fn all_waits<'a>(threads: impl IntoIterator<Item = &'a ClientReport>) -> Latencies {
    let mut all = Latencies::default();
    threads.into_iter().filter_map(|thread| thread.wake_to_run.as_ref()).for_each(|waits| all.add(waits));
    all
}

/// The same figures as the recording itself has them: waits from waking to running, and work.
pub fn as_recorded(recording: &Recording) -> Vec<ClientReport> {
    recording.scripts.iter().map(script_as_recorded).collect()
}

fn script_as_recorded(script: &Script) -> ClientReport {
    let mut waits = Latencies::default();
    script.waits_ns.iter().for_each(|&wait_ns| waits.record(wait_ns));
    ClientReport {
        name: script.name.clone(),
        ran_ns: script.service_ns(),
        wakes: script.waits_ns.len() as u64,
        wake_to_run: (waits.count() > 0).then_some(waits),
        ..ClientReport::default()
    }
}

/// More decisions than this are not simulated. It is ten days of work in quanta of 10 ms.
const MOST_DECISIONS: u64 = 100_000_000;

/// Why a recording cannot be run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The recording does not let time go on.
    #[error(transparent)]
    Stalled(#[from] Stalled),
    /// The recording is too long for its quanta.
    #[error(
        "a recording of {} s in quanta of {quantum_ns} ns takes {decisions} decisions, and {MOST_DECISIONS} are \
         simulated at most: name a longer --quantum", duration_ns.get() / 1_000_000_000
    )]
    TooLong {
        /// How long the recording, or the work in it, is.
        duration_ns: Nanoseconds,
        /// The quantum, or the policy's tick if that is shorter.
        quantum_ns: Nanoseconds,
        /// How many decisions there would be at least.
        decisions: u64,
    },
}

/// Checks whether it can be run in reasonable time.
fn check_length(recording: &Recording, quantum_ns: Nanoseconds) -> Result<(), RunError> {
    let duration_ns = recording.work_ns().max(recording.duration_ns);
    let decisions = duration_ns / quantum_ns.max(Nanoseconds::new(1));
    if decisions > MOST_DECISIONS {
        return Err(RunError::TooLong { duration_ns, quantum_ns, decisions });
    }
    Ok(())
}

/// The scheduler under which a recording is run again.
#[derive(Clone, Copy)]
pub enum Under {
    /// Linux's own scheduler, with a kernel of this build.
    Linux(Kernel),
    /// A policy of the catalog.
    Policy(&'static Entry),
}

/// Runs a recording to its end.
///
/// # Errors
///
/// [`RunError::Stalled`] after more than a million steps at one instant; [`RunError::TooLong`].
pub fn run(recording: &Recording, under: Under, settings: Settings) -> Result<Outcome, RunError> {
    let clients = recording.scripts.len();
    let setup = Setup {
        processors: settings.processors.max(1),
        quantum_ns: settings.quantum_ns,
        seed: settings.seed,
        domains: u16::try_from(recording.domains.len() + 1).unwrap_or(u16::MAX),
        ..Setup::for_clients(clients as u32)
    };
    // The model comes first, because Linux's scheduler shares its list of wakers.
    let model = Replay::new(recording, settings.seed);
    let policy = make(recording, under, &setup, &model);
    // Linux's scheduler ends slices at ticks, so its tick limits the number of decisions, not a quantum.
    let slices_ns = if let Under::Linux(_) = under { Nanoseconds::MAX } else { setup.quantum_ns };
    check_length(recording, policy.tick_ns().unwrap_or(Nanoseconds::MAX).min(slices_ns))?;
    let hardware =
        Hardware { processors: setup.processors, switch_ns: settings.switch_ns, ..Hardware::default() };
    let watch = Watch::new(clients, hardware, fluid(recording, setup.processors), Nanoseconds::MAX);
    let name = policy.name();
    let mut host = model.host(hardware, policy, (watch, End::default()));
    let Used { ran_ns, busy_ns } = measure(&mut host, recording, settings.measured)?;
    // From waking to running, including the recorded costs of the machine.
    let waits: Vec<_> =
        host.model().waits().map(|waits| (waits.count() > 0).then(|| waits.clone())).collect();
    let (watch, end) = host.into_recorder();
    let named = watch.into_reports().zip(&recording.scripts).zip(ran_ns.into_iter().zip(waits));
    let threads = named.map(|((report, script), (ran_ns, wake_to_run))| ClientReport {
        name: script.name.clone(),
        ran_ns,
        wake_to_run,
        ..report
    });
    Ok(Outcome { policy: name, end_ns: end.0, busy_ns, threads: threads.collect() })
}

/// The policy, which knows the recording's domains.
fn make(recording: &Recording, under: Under, setup: &Setup, model: &Replay<'_>) -> Box<dyn Policy> {
    let mut policy: Box<dyn Policy> = match under {
        Under::Linux(kernel) => {
            let kernel = Kernel { processors: setup.processors, ..kernel };
            Box::new(Linux::new(recording, kernel, model.wakers()))
        }
        Under::Policy(entry) => (entry.make)(setup),
    };
    for (number, &share) in (1..setup.domains).map(DomainIndex::new).zip(&recording.domains) {
        policy.add_domain(number, DomainIndex::ROOT, share);
    }
    policy
}

/// Runs a host to its end, or over the time that is measured. The answer and the watch are about that time alone.
fn measure<P: Policy>(
    host: &mut Host<P, Replay<'_>, (Watch, End)>,
    recording: &Recording,
    measured: Option<[Nanoseconds; 2]>,
) -> Result<Used, Stalled> {
    let clients = recording.scripts.len();
    let Some([from, until]) = measured else {
        run_to_the_end(host, clients, recording.duration_ns)?;
        return Ok(Used::of(host, clients));
    };
    host.run_until(from)?;
    let before = Used::of(host, clients);
    host.recorder_mut().0.begin(from);
    host.prepare(|model, _| model.forget_waits());
    host.run_until(until)?;
    host.recorder_mut().0.end(until);
    Ok(Used::of(host, clients).since(&before))
}

/// How long each client has run, and how long each processor has worked.
struct Used {
    ran_ns: Vec<Nanoseconds>,
    busy_ns: Vec<Nanoseconds>,
}

impl Used {
    fn of<P: Policy, R: Recorder>(host: &Host<P, Replay<'_>, R>, clients: usize) -> Used {
        let ran_ns = (0..clients).map(|client| host.ran_ns(ClientId::at(client))).collect();
        Used { ran_ns, busy_ns: host.times().map(|times| times.run_ns).collect() }
    }

    fn since(&self, before: &Used) -> Used {
        let less = |now: &[Nanoseconds], before: &[Nanoseconds]| {
            now.iter().zip(before).map(|(now, before)| *now - *before).collect()
        };
        Used { ran_ns: less(&self.ran_ns, &before.ran_ns), busy_ns: less(&self.busy_ns, &before.busy_ns) }
    }
}

/// The ideal server: equal shares for all of a domain.
fn fluid(recording: &Recording, processors: u16) -> Fluid {
    let mut fluid = Fluid::new(processors);
    recording.domains.iter().for_each(|&share| fluid.add_domain(DomainIndex::ROOT, share));
    recording.scripts.iter().for_each(|script| fluid.add(script.domain, Share::ONE));
    fluid
}

/// Runs in stretches, because it cannot be known beforehand how long the run takes.
fn run_to_the_end<P: Policy, R: Recorder>(
    host: &mut Host<P, Replay<'_>, R>,
    clients: usize,
    stretch_ns: Nanoseconds,
) -> Result<(), Stalled> {
    while !(0..clients).all(|client| host.model().is_done(ClientId::at(client))) {
        host.run_until(host.now_ns().saturating_add(stretch_ns.max(Nanoseconds::new(1_000_000))))?;
    }
    Ok(())
}

/// The time when the last client exited.
#[derive(Default)]
struct End(Nanoseconds);

impl Recorder for End {
    fn exited(&mut self, _client: ClientId, now_ns: Nanoseconds) {
        self.0 = now_ns;
    }
}
