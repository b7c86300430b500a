//! A fork's child is a component of its own: it starts with every probe off, no log memory and its
//! own socket.

use std::cell::RefCell;
use std::sync::MutexGuard;

use crate::registry::{self, Registry};
use crate::state::{self, State};
use crate::{debug, domain, publish, slot};

type Held = (MutexGuard<'static, State>, MutexGuard<'static, Registry>);

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Has the C library call the three functions below around each fork.
pub(crate) fn install() {
    // SAFETY: functions of the right type; they are never unloaded while the library is in use.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// No other thread is amid a change while the process is copied.
unsafe extern "C" fn before() {
    let held = (state::lock(), registry::lock());
    HELD.with_borrow_mut(|slot| *slot = Some(held));
}

unsafe extern "C" fn in_parent() {
    HELD.take();
}

unsafe extern "C" fn in_child() {
    let Some((mut state, mut registry)) = HELD.take() else { return };
    if let Err(error) = registry.switch_all_off() {
        debug::tell(|| error.to_string());
    }
    state.leave_to_parent();
    slot::after_fork();
    domain::unbind_all();
    state.memory.detach();
    drop((state, registry));
    publish::start();
}
