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
//! A decision never waits for the policy for more than 10 to 20 ms, or until the slices that run then end. After that, and
//! at once when the deciding thread is stopped or ends, the kernel's side has the tasks run in turn, and counts them
//! ([`PolicyStatus::undecided`]).
//!
//! Another policy can take over while tasks are scheduled ([`PolicyScheduler::set_policy`]). The one before it
//! comes back if it panics or hangs.

mod ahead;
mod answer;
mod client;
mod decider;
mod deciding;
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

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libbpf_rs::Link;
use libbpf_rs::skel::{OpenSkel, Skel};
use mete_base::locked::LockedMemory;
use mete_base::processors::online;
use mete_kernel::{Weight, check_pid_namespace, load_skeleton};
use mete_policy::{Entry, Nanoseconds, Setup};

use crate::check::check;
use crate::ended::Ended;
use crate::outside::deciding::Deciding;
pub(crate) use crate::outside::memory::{CLIENTS, DOMAINS};
use crate::outside::memory::{Memory, PROCESSORS};
pub use crate::outside::swap::Failure;
use crate::outside::swap::{Offer, Owned};
use crate::outside::thread::{Done, Shared};
use crate::scheduler::check_quantum;
use crate::skeleton::outside::{OutsideSkel, OutsideSkelBuilder};
use crate::{ExtError, causes, flags, group};

/// The policy's quantum: what it gives a client at a time, as a rule, if no other one is set.
pub const QUANTUM: Nanoseconds = Nanoseconds::from_millis(4);

/// In this time the deciding thread takes another policy. Where nothing else happens, it decides once a second.
const TAKES_ANOTHER: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// A policy outside the kernel, which rules all ordinary tasks while this lives.
///
/// The policy decides in a thread of its own, which runs where and when a decision is needed: two switches
/// and a system call for each. Its memory, that is all memory of this process, is locked. A decision that is
/// late by 10 to 20 ms is made by the kernel's side: tasks run in turn then, and at once when the thread
/// cannot run. [`PolicyStatus`] counts them.
pub struct PolicyScheduler {
    // The kernel takes its tasks back first.
    link: Option<Link>,
    _causes: Vec<Link>,
    deciding: Mutex<Deciding>,
    memory: Memory,
    skeleton: OutsideSkel<'static>,
    processors: usize,
    policies: Mutex<Policies>,
    _locked: LockedMemory,
}

/// The policy that was set last, and the one that takes its place if it fails. Locked for as long as a change takes, and
/// before the deciding thread is.
struct Policies {
    ruling: Kind,
    before: Option<Kind>,
}

/// A policy as it is made.
#[derive(Clone, Copy)]
struct Kind {
    entry: Entry,
    setup: Setup,
}

impl Kind {
    fn name(&self) -> &'static str {
        self.entry.name
    }

    /// Its quantum is how long a task of the ordinary weight runs at a time.
    fn make(&self) -> Owned {
        let Setup { mut quantum_ns, .. } = self.setup;
        if self.entry.has_turns_by_share {
            quantum_ns = Nanoseconds::new(quantum_ns.get() / u64::from(Weight::ORDINARY.get()));
        }
        (self.entry.make)(&Setup { quantum_ns, ..self.setup })
    }
}

impl Policies {
    /// The one of this name, which rules: the one before, if the other has panicked.
    fn in_force(&self, name: &str) -> Kind {
        let before = self.before.filter(|before| self.ruling.name() != name && before.name() == name);
        before.unwrap_or(self.ruling)
    }
}

/// What the scheduler has done since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyStatus {
    /// The policy that rules.
    pub policy: &'static str,
    /// The policy that was set last, if it has failed; the one before has taken its place, if there was one.
    pub failure: Option<Failure>,
    /// Clients that the policy chose.
    pub decisions: u64,
    /// Decisions that were carried out.
    pub decided: u64,
    /// Those that were not, because the task had run or left meanwhile.
    pub late: u64,
    /// Tasks that ran without a decision, because no other one waited.
    pub alone: u64,
    /// Tasks that ran at once when they woke, as the policy had said while they were blocked.
    pub went_ahead: u64,
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
        check_pid_namespace()?;
        let setup = Setup {
            clients: CLIENTS as u32,
            domains: DOMAINS as u16,
            processors: processors as u16,
            quantum_ns: QUANTUM,
            seed: 0,
        };
        let ruling = Kind { entry: *policy, setup };
        let processors = processors as usize;
        let mut deciding = Deciding::begin(ruling.make(), ruling.name(), processors, Done::default())?;
        let mut skeleton = load_skeleton::<OutsideSkelBuilder>(|open| {
            let operations = open.struct_ops.mete_mut();
            operations.flags = flags::taken(operations.flags)?;
            causes::choose(open.open_object_mut())
        })?;
        let map = || Memory::of(&skeleton).map_err(ExtError::Memory);
        let (memory, of_thread) = (map()?, map()?);
        memory.set_online(online(processors).into_iter().fold(0, |mask, processor| mask | 1 << processor));
        let locked = LockedMemory::new().map_err(ExtError::Locked)?;
        // Its thread is no client of the policy's.
        deciding.announce(&memory);
        let causes = causes::watch(skeleton.object_mut()).map_err(ExtError::Refused)?;
        let link = skeleton.maps.mete.attach_struct_ops().map_err(ExtError::Refused)?;
        Ended::check(memory.ended())?;
        deciding.hand_over(of_thread);
        Ok(PolicyScheduler {
            link: Some(link),
            _causes: causes,
            deciding: Mutex::new(deciding),
            memory,
            skeleton,
            processors,
            policies: Mutex::new(Policies { ruling, before: None }),
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
    /// had before does not count. If it fails, the policy that rules now takes its place, anew, too.
    ///
    /// # Errors
    ///
    /// [`ExtError::NotTaken`] if the deciding thread does not take it within some seconds. The policy that rules goes
    /// on then. [`ExtError::HasEnded`] if none rules any more; those of [`look`](PolicyScheduler::look) if it hangs.
    pub fn set_policy(&self, policy: &Entry) -> Result<(), ExtError> {
        let mut policies = lock(&self.policies);
        let setup = policies.ruling.setup;
        self.replace(Kind { entry: *policy, setup }, &mut policies)
    }

    /// Sets how long a client runs at a time, as a rule: the policy that rules takes over from itself with another
    /// quantum, as another policy does.
    ///
    /// # Errors
    ///
    /// [`ExtError::Quantum`] if it is not one of [`QUANTA`](crate::QUANTA), or those of
    /// [`set_policy`](PolicyScheduler::set_policy).
    pub fn set_quantum(&self, quantum: Nanoseconds) -> Result<(), ExtError> {
        let quantum_ns = check_quantum(quantum)?;
        let mut policies = lock(&self.policies);
        let Kind { entry, setup } = policies.in_force(lock(&self.deciding).shared.swap.state().0);
        self.replace(Kind { entry, setup: Setup { quantum_ns, ..setup } }, &mut policies)
    }

    fn replace(&self, policy: Kind, policies: &mut Policies) -> Result<(), ExtError> {
        let begin = Instant::now();
        loop {
            let shared = Arc::clone(&lock(&self.deciding).shared);
            let spare = policies.in_force(shared.swap.state().0);
            shared.swap.offer(Offer {
                policy: policy.make(),
                name: policy.name(),
                spare: spare.make(),
                of_spare: spare.name(),
            });
            if self.wait_until_taken(&shared, policy.name(), begin, policies)? {
                *policies = Policies { ruling: policy, before: Some(spare) };
                return Ok(());
            }
        }
    }

    /// `false`: the policy that was to take it hung, and another thread decides now.
    fn wait_until_taken(
        &self,
        shared: &Shared,
        policy: &'static str,
        begin: Instant,
        policies: &mut Policies,
    ) -> Result<bool, ExtError> {
        while shared.swap.is_offered() {
            let has_ended = self.memory.has_ended() || shared.has_ended.load(Ordering::Acquire);
            if (has_ended || begin.elapsed() > TAKES_ANOTHER) && shared.swap.withdraw() {
                return Err(if has_ended {
                    ExtError::HasEnded { policy }
                } else {
                    ExtError::NotTaken { policy }
                });
            }
            if self.replace_if_it_hangs(policies)? && shared.swap.withdraw() {
                return Ok(false);
            }
            sleep(BETWEEN_LOOKS);
        }
        Ok(true)
    }

    /// Looks whether the policy hangs: it computes for a second, or sleeps for five, without an answer. Then the one
    /// before it decides, in another thread; without one, none does any more, and the status says so. To be called some
    /// times each second.
    ///
    /// # Errors
    ///
    /// [`ExtError::Thread`] or [`ExtError::Memory`] if no other thread can decide: none does then.
    pub fn look(&self) -> Result<(), ExtError> {
        self.replace_if_it_hangs(&mut lock(&self.policies)).map(drop)
    }

    /// Whether another thread decides now, or none.
    fn replace_if_it_hangs(&self, policies: &mut Policies) -> Result<bool, ExtError> {
        let mut deciding = lock(&self.deciding);
        let Some(message) = deciding.hangs(&self.memory) else { return Ok(false) };
        let ruling = policies.in_force(deciding.shared.swap.state().0);
        let failure = Failure { policy: ruling.name(), message };
        let Some(before) = policies.before.filter(|before| before.name() != ruling.name()) else {
            deciding.give_up(&self.memory, failure);
            return Ok(true);
        };
        let (next, of_next) = match self.begin_another(before, &deciding) {
            Ok(next) => next,
            Err(error) => {
                deciding.give_up(&self.memory, failure);
                return Err(error);
            }
        };
        next.shared.swap.note(failure);
        next.announce(&self.memory);
        let mut hangs = std::mem::replace(&mut *deciding, next);
        deciding.hand_over(of_next);
        hangs.end(false);
        *policies = Policies { ruling: before, before: None };
        Ok(true)
    }

    /// A thread for a policy, and a mapping for it, in place of one whose policy hangs.
    fn begin_another(&self, policy: Kind, hangs: &Deciding) -> Result<(Deciding, Memory), ExtError> {
        let next = Deciding::begin(policy.make(), policy.name(), self.processors, hangs.shared.done())?;
        let memory = Memory::of(&self.skeleton).map_err(ExtError::Memory)?;
        hangs.dismiss().map_err(ExtError::Memory)?;
        Ok((next, memory))
    }

    /// What the scheduler has done since it started, and whether it still rules.
    #[must_use]
    pub fn status(&self) -> PolicyStatus {
        let counts = self.memory.counts();
        let (done, (policy, failure)) = {
            let deciding = lock(&self.deciding);
            (deciding.shared.done(), deciding.shared.swap.state())
        };
        PolicyStatus {
            policy,
            failure,
            decisions: done.decisions,
            decided: counts.decided,
            late: counts.late,
            alone: counts.alone,
            went_ahead: counts.went_ahead,
            undecided: counts.undecided,
            hastened: counts.hastened,
            extended: counts.extended,
            preempted: done.preempted,
            rounds: counts.rounds,
            lost: counts.lost,
            own: done.own,
            ended: self.ended(),
        }
    }

    fn ended(&self) -> Option<Ended> {
        let ended = self.memory.ended();
        if ended.is_some() {
            return ended;
        }
        let shared = Arc::clone(&lock(&self.deciding).shared);
        let failure = || shared.swap.state().1.map(|failure| format!("{failure}; "));
        shared.has_ended.load(Ordering::Acquire).then(|| Ended {
            is_fault: true,
            reason: "the policy decides no more".into(),
            message: format!("{}all tasks run in turn", failure().unwrap_or_default()),
            dump: String::new(),
        })
    }
}

impl Drop for PolicyScheduler {
    fn drop(&mut self) {
        self.link.take();
        lock(&self.deciding).end(true);
    }
}

/// What a lock guards is whole after a panic, too.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
