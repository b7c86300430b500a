//! Policies outside the kernel: any of the catalogue rules all ordinary tasks (design decision D13).
//!
//! ```text
//!   kernel's side ──(rows: woke, blocked, had its slice)──▶ deciding thread ──▶ policy
//!        ▲                                                        │
//!        └───────(for each processor: the next task, its slice)───┘
//! ```
//!
//! Both ways go through memory that both sides have mapped; there is no system call between a task's wake-up
//! and the decision but the one by which the deciding thread yields. That thread runs when there is something
//! to decide, in place of what runs, which goes on afterwards without the policy's noticing.
//!
//! A decision never waits for the policy for more than 10 to 20 ms. Then, and at once when the deciding
//! thread is stopped or ends, the kernel's side has the tasks run in turn, and counts them
//! ([`PolicyStatus::undecided`]).
//!
//! Another policy can take over while tasks are scheduled ([`PolicyScheduler::set_policy`]). The one before it
//! comes back if it panics.

mod answer;
mod client;
mod decider;
mod memory;
#[cfg(test)]
mod model;
mod reader;
mod ready;
mod row;
mod slot;
#[cfg(test)]
mod strict;
mod swap;
mod thread;

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use libbpf_rs::Link;
use mete_kernel::{Weight, load_skeleton};
use mete_policy::{Entry, Nanoseconds, Setup};
use rustix::thread::gettid;

use crate::check::check;
use crate::ended::Ended;
use crate::outside::decider::Decider;
use crate::outside::memory::{CLIENTS, DOMAINS, Memory, PROCESSORS};
pub use crate::outside::swap::Failure;
use crate::outside::thread::{Locked, Shared, run};
use crate::skeleton::outside::{OutsideSkel, OutsideSkelBuilder};
use crate::{ExtError, group};

/// The policy's quantum: what it gives a client at a time, as a rule.
pub const QUANTUM: Nanoseconds = Nanoseconds::from_millis(4);

/// In this time the deciding thread takes another policy. Where nothing else happens, it decides once a second.
const TAKES_ANOTHER: Duration = Duration::from_secs(5);
/// In this time the deciding thread ends, unless its policy hangs.
const ENDS: Duration = Duration::from_secs(2);

/// A policy outside the kernel, which rules all ordinary tasks while this lives.
///
/// The policy decides in a thread of its own, which runs where and when a decision is needed: two switches
/// and a system call for each. Its memory, that is all memory of this process, is locked. A decision that is
/// late by 10 to 20 ms is made by the kernel's side: tasks run in turn then, and at once when the thread
/// cannot run. [`PolicyStatus`] counts them.
pub struct PolicyScheduler {
    // The kernel takes its tasks back first.
    link: Option<Link>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    memory: Arc<Memory>,
    skeleton: OutsideSkel<'static>,
    setup: Setup,
    policies: Mutex<Policies>,
    _locked: Locked,
}

/// The policy that was set last, and the one that takes its place if it fails. Locked for as long as a change takes.
struct Policies {
    ruling: Entry,
    before: Entry,
}

/// What the scheduler has done since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyStatus {
    /// The policy that rules.
    pub policy: &'static str,
    /// The policy that was set last, if it has failed; the one before has taken its place.
    pub failure: Option<Failure>,
    /// Clients that the policy chose.
    pub decisions: u64,
    /// Decisions that were carried out.
    pub decided: u64,
    /// Those that were not, because the task had run or left meanwhile.
    pub late: u64,
    /// Tasks that ran without a decision, because no other one waited.
    pub alone: u64,
    /// Tasks that ran by turn, because the policy had not decided by the deadline.
    pub undecided: u64,
    /// Tasks that ran because they had waited for some seconds.
    pub hastened: u64,
    /// Slices that went on for a moment, because the policy was just deciding what is next.
    pub extended: u64,
    /// Tasks that gave way at once to one that woke.
    pub preempted: u64,
    /// How often the deciding thread has run.
    pub rounds: u64,
    /// What was not told, because the deciding thread was late: it looked at all tasks then.
    pub lost: u64,
    /// What the deciding thread has used.
    pub own: Nanoseconds,
    /// Why the kernel has ended the scheduler, or why the policy decides no more.
    pub ended: Option<Ended>,
}

impl PolicyScheduler {
    /// Has a policy schedule all ordinary tasks.
    ///
    /// Needs Linux 6.12 with sched_ext and type information, and root or the capabilities `CAP_BPF`,
    /// `CAP_PERFMON`, `CAP_SYS_ADMIN` and `CAP_IPC_LOCK`.
    ///
    /// # Errors
    ///
    /// [`ExtError`] says what is missing, which scheduler rules already, or what the kernel refused.
    pub fn start(policy: &Entry) -> Result<PolicyScheduler, ExtError> {
        let processors = check(PROCESSORS)?;
        let setup = Setup {
            clients: CLIENTS as u32,
            domains: DOMAINS as u16,
            processors: processors as u16,
            quantum_ns: QUANTUM,
            seed: 0,
        };
        let decider = Decider::new((policy.make)(&setup), processors as usize);
        let shared = Arc::new(Shared::of(policy.name));
        let (hands_over, takes_over) = sync_channel(1);
        let (says_thread, hears_thread) = sync_channel(1);
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("mete-policy".into())
            .spawn(move || decide(decider, of_thread, &says_thread, &takes_over))
            .map_err(ExtError::Thread)?;
        // It ends when this is dropped, if the scheduler cannot be loaded.
        let number =
            hears_thread.recv().map_err(|_| ExtError::Thread(std::io::ErrorKind::BrokenPipe.into()))?;
        let mut skeleton = load(number, processors)?;
        let memory = Arc::new(Memory::of(&skeleton).map_err(ExtError::Thread)?);
        memory.set_online(online(processors));
        let locked = Locked::new().map_err(ExtError::Locked)?;
        let link = skeleton.maps.mete.attach_struct_ops().map_err(ExtError::Refused)?;
        // The other side waits for it.
        let _ = hands_over.send(Arc::clone(&memory));
        Ok(PolicyScheduler {
            link: Some(link),
            thread: Some(thread),
            shared,
            memory,
            skeleton,
            setup,
            policies: Mutex::new(Policies { ruling: *policy, before: *policy }),
            _locked: locked,
        })
    }

    /// Sets the weight of a cgroup. It takes the place of the cgroup's `cpu.weight` until the cgroup is
    /// removed or this scheduler ends; `None` gives `cpu.weight` its place back.
    ///
    /// # Errors
    ///
    /// [`ExtError::Cgroup`] if the directory is no cgroup of version 2 that has a share of its own, and why.
    pub fn set_weight(&self, cgroup: &Path, weight: Option<Weight>) -> Result<(), ExtError> {
        let OutsideSkel { progs, maps, .. } = &self.skeleton;
        group::set_weight(&progs.set_share, &maps.domains_of_cgroups, cgroup, weight)
    }

    /// Has another policy rule, without a moment in which none does. It is told all tasks and groups anew: what they
    /// had before does not count. If it panics, the policy that rules now takes its place, anew, too.
    ///
    /// # Errors
    ///
    /// [`ExtError::NotTaken`] if the deciding thread does not take it within some seconds. The policy that rules goes
    /// on then.
    pub fn set_policy(&self, policy: &Entry) -> Result<(), ExtError> {
        let mut policies = self.policies.lock().unwrap_or_else(PoisonError::into_inner);
        let (ruling, _) = self.shared.swap.state();
        let spare = if ruling == policies.ruling.name { policies.ruling } else { policies.before };
        self.shared.swap.offer((policy.make)(&self.setup), (spare.make)(&self.setup));
        let begin = Instant::now();
        while self.shared.swap.is_offered() {
            if begin.elapsed() > TAKES_ANOTHER && self.shared.swap.withdraw() {
                return Err(ExtError::NotTaken { policy: policy.name });
            }
            sleep(Duration::from_millis(1));
        }
        *policies = Policies { ruling: *policy, before: spare };
        Ok(())
    }

    /// What the scheduler has done since it started, and whether it still rules.
    #[must_use]
    pub fn status(&self) -> PolicyStatus {
        let counts = self.memory.counts();
        let of_thread = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
        let (policy, failure) = self.shared.swap.state();
        PolicyStatus {
            policy,
            failure,
            decisions: of_thread(&self.shared.decisions),
            decided: counts.decided,
            late: counts.late,
            alone: counts.alone,
            undecided: counts.undecided,
            hastened: counts.hastened,
            extended: counts.extended,
            preempted: of_thread(&self.shared.preempted),
            rounds: counts.rounds,
            lost: counts.lost,
            own: Nanoseconds::new(of_thread(&self.shared.own_ns)),
            ended: self.ended(),
        }
    }

    fn ended(&self) -> Option<Ended> {
        let exit = self.skeleton.maps.bss_data.as_ref()?;
        let dump = self.skeleton.maps.bss_dump_data.as_ref()?;
        if exit.exit_kind != 0 {
            return Some(Ended::of(&exit.exit_reason, &exit.exit_message, &dump.exit_dump));
        }
        let failure = || self.shared.swap.state().1.map(|failure| format!("{failure}; "));
        self.shared.has_ended.load(Ordering::Acquire).then(|| Ended {
            reason: "the thread of the policy has ended".into(),
            message: format!("{}all tasks run in turn", failure().unwrap_or_default()),
            dump: String::new(),
        })
    }
}

impl Drop for PolicyScheduler {
    fn drop(&mut self) {
        self.link.take();
        self.shared.stops.store(true, Ordering::Release);
        let begin = Instant::now();
        let hangs = |thread: &JoinHandle<()>| !thread.is_finished() && begin.elapsed() < ENDS;
        while self.thread.as_ref().is_some_and(hangs) {
            sleep(Duration::from_millis(1));
        }
        // A thread whose policy hangs goes on by itself, with what it uses; it schedules nothing any more.
        self.thread.take().filter(JoinHandle::is_finished).map(JoinHandle::join);
    }
}

/// Says which thread this is, waits for the memory, and decides.
fn decide(
    decider: Decider,
    shared: Arc<Shared>,
    says_thread: &SyncSender<i32>,
    takes_over: &Receiver<Arc<Memory>>,
) {
    // An error means that the other side has given up.
    let _ = says_thread.send(gettid().as_raw_nonzero().get());
    if let Ok(memory) = takes_over.recv() {
        run(decider, &memory, shared);
    }
}

fn load(thread: i32, processors: u32) -> Result<OutsideSkel<'static>, ExtError> {
    let skeleton = load_skeleton::<OutsideSkelBuilder>(|open| {
        if let Some(settings) = &mut open.maps.rodata_data {
            settings.policy_thread = thread;
            settings.processor_count = processors;
        }
        Ok(())
    })?;
    Ok(skeleton)
}

/// The processors that there are at the moment, a bit each; all, if the kernel does not say.
fn online(processors: u32) -> u64 {
    let is_online = |processor: &u32| {
        // The first one as a rule cannot go, and then has no such file.
        let file = format!("/sys/devices/system/cpu/cpu{processor}/online");
        fs::read_to_string(file).map_or(true, |text| text.trim() == "1")
    };
    (0..processors).filter(is_online).fold(0, |mask, processor| mask | 1 << processor)
}
