//! The thread in which a policy outside the kernel decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mete_policy::Nanoseconds;
use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::thread::{disable_transparent_huge_pages, sched_getcpu, transparent_huge_pages_are_disabled};
use rustix::time::{ClockId, clock_gettime};

use crate::outside::decider::Decider;
use crate::outside::memory::Memory;

/// After how many rounds it reads how much it has used itself.
const BETWEEN_OWN: u64 = 64;

/// What this thread and the scheduler's owner share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub stops: AtomicBool,
    /// The thread has ended, though it was not told to.
    pub has_ended: AtomicBool,
    pub decisions: AtomicU64,
    pub preempted: AtomicU64,
    pub own_ns: AtomicU64,
}

impl Shared {
    fn tell(&self, decider: &Decider) {
        self.decisions.store(decider.counts.decisions, Ordering::Relaxed);
        self.preempted.store(decider.counts.preempted, Ordering::Relaxed);
    }
}

/// The memory of this process, which stays where it is: to wait for a page is to wait for a task that waits
/// for a decision.
///
/// Locked pages are not read from a disk. But the kernel collapses small pages to huge ones, in a thread that
/// is scheduled like any task and meanwhile keeps others from the process's memory. So it is asked not to.
pub(crate) struct Locked {
    had_no_huge_pages: bool,
}

impl Locked {
    pub fn new() -> std::io::Result<Locked> {
        // A kernel without huge pages does not know either call.
        let had_no_huge_pages = transparent_huge_pages_are_disabled().unwrap_or(true);
        if !had_no_huge_pages {
            disable_transparent_huge_pages(true)?;
        }
        let locked = Locked { had_no_huge_pages };
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?;
        Ok(locked)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Neither can fail.
        let _ = munlockall();
        if !self.had_no_huge_pages {
            let _ = disable_transparent_huge_pages(false);
        }
    }
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
pub(crate) fn run(mut decider: Decider, memory: &Memory, shared: Arc<Shared>) {
    let said = SayEnd(shared);
    let shared = &said.0;
    let mut rounds = 0_u64;
    while !shared.stops.load(Ordering::Acquire) && !memory.has_ended() {
        memory.begin_round();
        // Only now: rows up to this time are there.
        decider.round(memory, now(ClockId::Monotonic), sched_getcpu());
        shared.tell(&decider);
        if rounds.is_multiple_of(BETWEEN_OWN) {
            shared.own_ns.store(now(ClockId::ThreadCPUTime).get(), Ordering::Relaxed);
        }
        rounds += 1;
        std::thread::yield_now();
    }
}

fn now(clock: ClockId) -> Nanoseconds {
    let time = clock_gettime(clock);
    Nanoseconds::new(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
