//! Accounting domains of the threads (LOG-6; thesis §3.5, §4.4.2).
//!
//! A thread's domain comes, first that is set: from the scheduler for this thread, from the program
//! for this thread, from the scheduler for the process, from the program for the process. The
//! result stands in the thread's [`slot`], where the logging path finds it by one load; whoever
//! changes an input settles the slots that it concerns.

use core::sync::atomic::{AtomicU32, Ordering};

use mete_log::DomainId;

use crate::slot::{self, Slot};

/// As an input: not set.
pub(crate) const UNSET: u32 = u32::MAX;

static PROCESS_BOUND: AtomicU32 = AtomicU32::new(UNSET);
static PROCESS_OWN: AtomicU32 = AtomicU32::new(UNSET);

/// Sets the calling thread's domain. The scheduler's word for this thread goes before it.
pub fn set_domain(domain: DomainId) {
    let slot = slot::mine();
    slot.own.store(u32::from(domain), Ordering::SeqCst);
    settle(slot);
}

/// Sets the domain of the process' threads that have none of their own. The scheduler's word for
/// the process goes before it.
pub fn set_process_domain(domain: DomainId) {
    PROCESS_OWN.store(u32::from(domain), Ordering::SeqCst);
    slot::all().for_each(settle);
}

/// The scheduler binds the whole process.
pub(crate) fn bind_process(domain: DomainId) {
    PROCESS_BOUND.store(u32::from(domain), Ordering::SeqCst);
    slot::all().for_each(settle);
}

/// The scheduler binds one thread; false if this process has no such thread.
pub(crate) fn bind_thread(tid: u32, domain: DomainId) -> bool {
    if !std::path::Path::new(&format!("/proc/self/task/{tid}")).exists() {
        return false;
    }
    // A thread that has not logged yet finds its binding when it does.
    let Some(slot) = slot::of_thread(tid) else { return false };
    slot.bound.store(u32::from(domain), Ordering::SeqCst);
    settle(slot);
    true
}

/// Forgets what the scheduler bound: it is gone.
pub(crate) fn unbind_all() {
    PROCESS_BOUND.store(UNSET, Ordering::SeqCst);
    for slot in slot::all() {
        slot.bound.store(UNSET, Ordering::SeqCst);
        settle(slot);
    }
    slot::free_unused();
}

/// Brings a slot's domain in line with its inputs. The thread and the listener may do so at once:
/// whoever stores last sees, by looking again, what the other one changed.
pub(crate) fn settle(slot: &Slot) {
    let mut domain = wanted(slot);
    loop {
        slot.domain.store(domain, Ordering::SeqCst);
        let now = wanted(slot);
        if now == domain {
            return;
        }
        domain = now;
    }
}

fn wanted(slot: &Slot) -> u32 {
    let inputs = [&slot.bound, &slot.own, &PROCESS_BOUND, &PROCESS_OWN];
    let mut set =
        inputs.into_iter().map(|input| input.load(Ordering::SeqCst)).filter(|&domain| domain != UNSET);
    set.next().unwrap_or(0)
}
