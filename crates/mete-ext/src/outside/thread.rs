//! The thread in which a policy outside the kernel decides.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mete_base::processors::{allowed, online};
use mete_policy::Nanoseconds;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::ExtError;
use crate::outside::decider::Decider;
use crate::outside::memory::Memory;
use crate::outside::swap::{Owned, Swap};

/// The thread asks the kernel for its own processor time once in this number of rounds.
const BETWEEN_OWN: u64 = 64;

/// What this thread and the scheduler's owner share.
pub(crate) struct Shared {
    pub stops: AtomicBool,
    /// The thread has ended, because it was told to or for any other reason.
    pub has_ended: AtomicBool,
    /// How often the thread has come to the end of a round.
    pub turns: AtomicU64,
    decisions: AtomicU64,
    preempted: AtomicU64,
    own_ns: AtomicU64,
    /// What another thread has done before it.
    before: Done,
    pub swap: Swap,
}

/// What deciding threads have done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub decisions: u64,
    pub preempted: u64,
    /// The processor time that they have used.
    pub own: Nanoseconds,
}

impl Shared {
    /// For a policy of this name.
    pub fn of(policy: &'static str, before: Done) -> Shared {
        Shared {
            stops: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            turns: AtomicU64::new(0),
            decisions: AtomicU64::new(0),
            preempted: AtomicU64::new(0),
            own_ns: AtomicU64::new(0),
            before,
            swap: Swap::of(policy),
        }
    }

    fn tell(&self, decider: &Decider) {
        self.turns.fetch_add(1, Ordering::Relaxed);
        self.decisions.store(decider.counts.decisions, Ordering::Relaxed);
        self.preempted.store(decider.counts.preempted, Ordering::Relaxed);
    }

    /// With what was done before.
    pub fn done(&self) -> Done {
        Done {
            decisions: self.before.decisions + self.decisions.load(Ordering::Relaxed),
            preempted: self.before.preempted + self.preempted.load(Ordering::Relaxed),
            own: self.before.own.saturating_add(Nanoseconds::new(self.own_ns.load(Ordering::Relaxed))),
        }
    }
}

/// Makes this thread an ordinary one, whatever the one that started it is: the kernel's side lets only such threads wait until
/// there is something to decide, and one in real time would spin.
pub(crate) fn be_ordinary() -> Result<(), ExtError> {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: thread 0 is the calling thread, and the parameter outlives the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameter) } {
        0 => Ok(()),
        _ => Err(ExtError::Thread(std::io::Error::last_os_error())),
    }
}

/// Lets this thread decide on any processor, now and when more of them are online.
pub(crate) fn run_everywhere() -> Result<(), ExtError> {
    let failed = |error: rustix::io::Errno| ExtError::Thread(error.into());
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|processor| all.set(processor));
    sched_setaffinity(None, &all).map_err(failed)?;
    // What the cpuset of its cgroup excludes, the kernel leaves out without a word.
    let may = allowed().map_err(failed)?;
    let missing = online(CpuSet::MAX_CPU).into_iter().filter(|processor| !may.contains(processor));
    let missing: Vec<_> = missing.map(|processor| processor.to_string()).collect();
    if missing.is_empty() { Ok(()) } else { Err(ExtError::Bound { missing: missing.join(", ") }) }
}

/// Says that the thread has ended, however it ends.
struct SayEnd(Arc<Shared>);

impl Drop for SayEnd {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::Release);
    }
}

/// Decides until it is to stop, or the kernel has ended the scheduler. It never sleeps: the kernel's side
/// lets it run when there is something to decide, after it has yielded.
///
/// A policy that panics is replaced by the one before; without one, the thread ends.
pub(crate) fn run(mut decider: Decider, memory: &Memory, shared: Arc<Shared>) {
    let said = SayEnd(shared);
    let shared = &said.0;
    let mut rounds = 0_u64;
    while !shared.stops.load(Ordering::Acquire) && !memory.has_ended() {
        memory.begin_round();
        // Only now: rows up to this time are there.
        let time = now(ClockId::Monotonic);
        let next = match attempt(|| decider.round(memory, time, sched_getcpu())) {
            Ok(()) => shared.swap.take(),
            Err(message) => match shared.swap.take_spare(message) {
                Some(spare) => Some(spare),
                None => return,
            },
        };
        shared.tell(&decider);
        if let Some(policy) = next {
            if !adopt(&mut decider, memory, policy, &shared.swap) {
                return;
            }
            // What the new policy decides is due at once.
            continue;
        }
        if rounds.is_multiple_of(BETWEEN_OWN) {
            shared.own_ns.store(now(ClockId::ThreadCPUTime).get(), Ordering::Relaxed);
        }
        rounds += 1;
        std::thread::yield_now();
    }
}

/// Has a policy rule, or, if it fails at once, its spare; `false` if that does not either.
fn adopt(decider: &mut Decider, memory: &Memory, mut policy: Owned, swap: &Swap) -> bool {
    loop {
        match attempt(|| decider.adopt(memory, policy, now(ClockId::Monotonic))) {
            Ok(before) => {
                swap.retire(before);
                return true;
            }
            Err(message) => match swap.take_spare(message) {
                Some(spare) => policy = spare,
                None => return false,
            },
        }
    }
}

/// What a policy does, or its last words if it panics.
fn attempt<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // After a panic another policy is told all anew, and nothing that the old one left half done is used.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".into())
    })
}

fn now(clock: ClockId) -> Nanoseconds {
    let time = clock_gettime(clock);
    Nanoseconds::new(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
