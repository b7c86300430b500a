//! A fork's child is a component of its own: it starts with every probe off, no log memory and its
//! own socket.

use core::cell::UnsafeCell;
use std::sync::MutexGuard;

use crate::registry::{self, Registry};
use crate::state::{self, State};
use crate::{debug, domain, publish, slot};

type Held = (MutexGuard<'static, State>, MutexGuard<'static, Registry>);

/// The locks that a forking thread holds. It is only looked at by who holds them: they protect it.
/// Not thread-local: a thread may fork once more after its thread-local values have been destroyed.
struct Keeper(UnsafeCell<Option<Held>>);

// SAFETY: see `Keeper`; the guards return to the thread that they come from, or to its copy.
unsafe impl Sync for Keeper {}

static HELD: Keeper = Keeper(UnsafeCell::new(None));

impl Keeper {
    fn put(&self, held: Held) {
        // SAFETY: the calling thread holds the locks, so nobody else is in here.
        unsafe { *self.0.get() = Some(held) };
    }

    /// # Safety
    ///
    /// For the thread that has called `put`, after the fork.
    unsafe fn take(&self) -> Option<Held> {
        // SAFETY: the locks are still held, by the caller.
        unsafe { (*self.0.get()).take() }
    }
}

/// Has the C library call the three functions below around each fork.
pub(crate) fn install() {
    // SAFETY: functions of the right type; they are never unloaded while the library is in use.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// No other thread is amid a change while the process is copied.
unsafe extern "C" fn before() {
    HELD.put((state::lock(), registry::lock()));
}

unsafe extern "C" fn in_parent() {
    // SAFETY: the C library calls this in the thread that it called `before` in.
    drop(unsafe { HELD.take() });
}

unsafe extern "C" fn in_child() {
    // SAFETY: this is the copy of the thread that `before` was called in.
    let Some((mut state, mut registry)) = (unsafe { HELD.take() }) else { return };
    if let Err(error) = registry.switch_all_off() {
        debug::tell(|| error.to_string());
    }
    state.leave_to_parent();
    slot::after_fork();
    domain::unbind_all();
    state.memory.detach();
    drop((state, registry));
    publish::start_in_child();
}
