//! The child of a fork is a component of its own: it starts with every probe off, without log memory and with
//! its own socket.

use core::cell::UnsafeCell;
use std::sync::MutexGuard;

use crate::registry::{self, Registry};
use crate::state::{self, ProcessState};
use crate::{debug, domain, listener, slot};

type HeldLocks = (MutexGuard<'static, ProcessState>, MutexGuard<'static, Registry>);

/// The locks that a forking thread holds. Only a thread that holds them accesses this value, so they protect
/// it. It is not thread-local, because a thread can fork after its thread-local values have been destroyed.
struct LockKeeper(UnsafeCell<Option<HeldLocks>>);

// SAFETY: the locks protect the value, see `LockKeeper`. The guards return to the thread that they come from,
// or to its copy.
unsafe impl Sync for LockKeeper {}

static HELD: LockKeeper = LockKeeper(UnsafeCell::new(None));

impl LockKeeper {
    fn put(&self, held: HeldLocks) {
        // SAFETY: the calling thread holds the locks, so no other thread accesses the value.
        unsafe { *self.0.get() = Some(held) };
    }

    /// # Safety
    ///
    /// Only the thread that has called `put`, or its copy, may call this, after the fork.
    unsafe fn take(&self) -> Option<HeldLocks> {
        // SAFETY: the locks are still held, by the caller.
        unsafe { (*self.0.get()).take() }
    }
}

/// Has the C library call the three functions below around each fork.
pub(crate) fn install() {
    // SAFETY: the functions have the right type and are never unloaded while the library is in use.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// Takes the locks, so that no other thread is in the middle of a change while the process is copied.
unsafe extern "C" fn before() {
    // No other place holds both, so their order cannot lead to a deadlock.
    HELD.put((state::lock(), registry::lock()));
}

unsafe extern "C" fn in_parent() {
    // SAFETY: the C library calls this in the thread that it called `before` in.
    drop(unsafe { HELD.take() });
}

unsafe extern "C" fn in_child() {
    // SAFETY: this is the copy of the thread that `before` was called in.
    let Some((mut state, mut registry)) = (unsafe { HELD.take() }) else { return };
    // First the probes: the child must not log into its parent's memory.
    debug::tell_error(registry.switch_all_off());
    state.leave_to_parent();
    slot::after_fork();
    domain::unbind_all();
    state.memory.detach();
    drop((state, registry));
    listener::start_in_child();
}
