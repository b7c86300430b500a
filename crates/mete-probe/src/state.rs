//! What belongs to this process and not to its children: kept in one place, under one lock, so
//! that a fork finds it whole and its child can put it aside.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::descriptor::{Descriptor, Note};
use crate::memory::Memory;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct State {
    /// The log memory.
    pub memory: Memory,
    /// The file of the socket, to be removed at exit.
    pub socket_file: Option<PathBuf>,
    /// Open sockets of the listener, to be closed in a child.
    sockets: Vec<Note>,
}

static STATE: Mutex<State> =
    Mutex::new(State { memory: Memory::new(), socket_file: None, sockets: Vec::new() });

/// The state, for this thread alone. Held for short: a fork waits for it.
pub(crate) fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Notes a socket that was just opened, under the same lock.
    pub fn opened(&mut self, socket: &Descriptor) {
        self.sockets.push(socket.note());
    }

    /// Forgets a socket that is about to be closed. A fork in between leaves the child with one
    /// descriptor too many; the other side has been told the end by then.
    pub fn closing(&mut self, socket: &Descriptor) {
        if let Ok(socket) = socket.get() {
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
        self.sockets.retain(|&noted| noted != socket.note());
    }

    /// In the child of a fork: the sockets and their file are the parent's.
    pub fn leave_to_parent(&mut self) {
        // Their owner, the listener, does not exist in the child.
        self.sockets.drain(..).for_each(Note::close);
        self.socket_file = None;
    }
}
