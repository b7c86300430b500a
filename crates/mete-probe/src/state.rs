//! What belongs to this process and not to its children: kept in one place, under one lock, so
//! that a fork finds it whole and its child can put it aside.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::Memory;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct State {
    /// The log memory.
    pub memory: Memory,
    /// The file of the socket, to be removed at exit.
    pub socket_file: Option<PathBuf>,
    /// Open sockets of the listener, to be closed in a child.
    sockets: Vec<RawFd>,
}

static STATE: Mutex<State> =
    Mutex::new(State { memory: Memory::new(), socket_file: None, sockets: Vec::new() });

/// The state, for this thread alone. Held for short: a fork waits for it.
pub(crate) fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Notes a socket that was just opened, under the same lock.
    pub fn opened(&mut self, socket: &OwnedFd) {
        self.sockets.push(socket.as_raw_fd());
    }

    /// Forgets a socket that is about to be closed. A fork in between leaves the child with one
    /// descriptor too many; the other side has been told the end by then.
    pub fn closing(&mut self, socket: BorrowedFd<'_>) {
        let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        self.sockets.retain(|&noted| noted != socket.as_raw_fd());
    }

    /// In the child of a fork: the sockets and their file are the parent's.
    pub fn leave_to_parent(&mut self) {
        for socket in self.sockets.drain(..) {
            // SAFETY: noted while open, and its owner, the listener, does not exist in the child.
            unsafe { libc::close(socket) };
        }
        self.socket_file = None;
    }
}
