//! Which domain a thread is charged to (LOG-6; thesis §3.5, §4.4.2).
//!
//! It is the first of these that is set: the scheduler's for the thread, the program's for the thread, the
//! scheduler's for the process, the program's for the process. The two for the process are here, the two for
//! the thread are in its slot. [`settle`] stores the result, so that the logging path finds it by one load.

use core::sync::atomic::{AtomicU32, Ordering};

/// The value of an input that is not set.
pub(crate) const UNSET: u32 = u32::MAX;

/// The scheduler's domain for the process.
pub(crate) static PROCESS_BOUND: AtomicU32 = AtomicU32::new(UNSET);
/// The program's domain for the process.
pub(crate) static PROCESS_OWN: AtomicU32 = AtomicU32::new(UNSET);

/// Sets a thread's domain to what its inputs say: `bound` is the scheduler's for the thread, `own` the
/// program's. The thread and the listener can do so at once: the one that stores last looks again, and so
/// sees what the other one changed.
pub(crate) fn settle(domain: &AtomicU32, bound: &AtomicU32, own: &AtomicU32) {
    let mut wanted = first_set(bound, own);
    loop {
        // SeqCst, here and for all inputs: each side stores an input and then the domain, and loads the
        // other side's input afterwards. Weaker orderings would let both miss the other's store.
        domain.store(wanted, Ordering::SeqCst);
        let now = first_set(bound, own);
        if now == wanted {
            return;
        }
        wanted = now;
    }
}

fn first_set(bound: &AtomicU32, own: &AtomicU32) -> u32 {
    // In order of precedence.
    let inputs = [bound, own, &PROCESS_BOUND, &PROCESS_OWN];
    let mut set =
        inputs.into_iter().map(|input| input.load(Ordering::SeqCst)).filter(|&domain| domain != UNSET);
    // The default domain.
    set.next().unwrap_or(0)
}
