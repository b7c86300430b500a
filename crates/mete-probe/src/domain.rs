//! Accounting domains of the threads (LOG-6; thesis §3.5, §4.4.2).
//!
//! A thread's domain is the first of these that is set: the scheduler's for this thread, the program's for
//! this thread, the scheduler's for the process, the program's for the process. The result is in the thread's
//! [`slot`], where the logging path finds it by one load. Each function that changes an input settles the
//! slots that depend on it.

use core::sync::atomic::{AtomicU32, Ordering};

use mete_log::DomainId;

use crate::slot::{self, ThreadSlot};

/// The value of an input that is not set.
pub(crate) const UNSET: u32 = u32::MAX;

static PROCESS_BOUND: AtomicU32 = AtomicU32::new(UNSET);
static PROCESS_OWN: AtomicU32 = AtomicU32::new(UNSET);

/// Sets the calling thread's domain. A domain that the scheduler sets for this thread takes precedence.
pub fn set_domain(domain: DomainId) {
    let slot = slot::mine();
    slot.own.store(u32::from(domain), Ordering::SeqCst);
    settle(slot);
}

/// Sets the domain of those threads of the process that have none of their own. A domain that the scheduler
/// sets for the process takes precedence.
pub fn set_process_domain(domain: DomainId) {
    PROCESS_OWN.store(u32::from(domain), Ordering::SeqCst);
    slot::all().for_each(settle);
}

/// Binds the whole process, at the scheduler's request.
pub(crate) fn bind_process(domain: DomainId) {
    PROCESS_BOUND.store(u32::from(domain), Ordering::SeqCst);
    slot::all().for_each(settle);
}

/// Binds one thread, at the scheduler's request. False if this process has no such thread.
pub(crate) fn bind_thread(tid: u32, domain: DomainId) -> bool {
    if !std::path::Path::new(&format!("/proc/self/task/{tid}")).exists() {
        return false;
    }
    // A thread that has not logged yet finds its binding when it does: the slot is kept for it.
    let Some(slot) = slot::of_thread(tid) else { return false };
    slot.bound.store(u32::from(domain), Ordering::SeqCst);
    settle(slot);
    true
}

/// Forgets the scheduler's bindings, because the scheduler is gone.
pub(crate) fn unbind_all() {
    PROCESS_BOUND.store(UNSET, Ordering::SeqCst);
    for slot in slot::all() {
        slot.bound.store(UNSET, Ordering::SeqCst);
        settle(slot);
    }
    slot::free_unused();
}

/// Sets a slot's domain to what its inputs say. The thread and the listener can do so at once: the one that
/// stores last looks again, and so sees what the other one changed.
pub(crate) fn settle(slot: &ThreadSlot) {
    let mut domain = wanted(slot);
    loop {
        // SeqCst, here and for all inputs: each side stores an input and then the domain, and loads the
        // other side's input afterwards. Weaker orderings would let both miss the other's store.
        slot.domain.store(domain, Ordering::SeqCst);
        let now = wanted(slot);
        if now == domain {
            return;
        }
        domain = now;
    }
}

/// The domain that the inputs ask for.
fn wanted(slot: &ThreadSlot) -> u32 {
    // In order of precedence.
    let inputs = [&slot.bound, &slot.own, &PROCESS_BOUND, &PROCESS_OWN];
    let mut set =
        inputs.into_iter().map(|input| input.load(Ordering::SeqCst)).filter(|&domain| domain != UNSET);
    set.next().unwrap_or(0)
}
