//! Accounting domains of the threads (LOG-6; thesis §3.5, §4.4.2).
//!
//! The program and the scheduler set the inputs of a thread's domain here; [`precedence`](crate::precedence)
//! decides which one counts. Each function that changes an input settles the slots that depend on it. All
//! stores of inputs are SeqCst, as `precedence` asks for.

use core::sync::atomic::Ordering;

use mete_log::DomainId;

use crate::precedence::{PROCESS_BOUND, PROCESS_OWN, UNSET};
use crate::slot::{self, ThreadSlot};

/// Sets the calling thread's domain. A domain that the scheduler sets for this thread takes precedence.
pub fn set_domain(domain: DomainId) {
    let slot = slot::mine();
    slot.own.store(u32::from(domain.get()), Ordering::SeqCst);
    slot.settle();
}

/// Sets the domain of those threads of the process that have none of their own. A domain that the scheduler
/// sets for the process takes precedence.
pub fn set_process_domain(domain: DomainId) {
    PROCESS_OWN.store(u32::from(domain.get()), Ordering::SeqCst);
    slot::all().for_each(ThreadSlot::settle);
}

/// Binds the whole process, at the scheduler's request.
pub(crate) fn bind_process(domain: DomainId) {
    PROCESS_BOUND.store(u32::from(domain.get()), Ordering::SeqCst);
    slot::all().for_each(ThreadSlot::settle);
}

/// Binds one thread, at the scheduler's request. False if this process has no such thread.
pub(crate) fn bind_thread(tid: u32, domain: DomainId) -> bool {
    if !std::path::Path::new(&format!("/proc/self/task/{tid}")).exists() {
        return false;
    }
    // A thread that has not logged yet finds its binding when it does: the slot is kept for it.
    let Some(slot) = slot::of_thread(tid) else { return false };
    slot.bound.store(u32::from(domain.get()), Ordering::SeqCst);
    slot.settle();
    true
}

/// Forgets the scheduler's bindings, because the scheduler is gone.
pub(crate) fn unbind_all() {
    PROCESS_BOUND.store(UNSET, Ordering::SeqCst);
    for slot in slot::all() {
        slot.bound.store(UNSET, Ordering::SeqCst);
        slot.settle();
    }
    slot::free_unused();
}
