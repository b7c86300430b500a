//! What belongs to this process and not to its children. It is kept in one place, under one lock, so that a
//! fork copies it whole and the child can put it aside.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::descriptor::{Descriptor, FileNote};
use crate::memory::LogMemory;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct ProcessState {
    /// The log memory.
    pub memory: LogMemory,
    /// The socket's file, which is removed at the exit.
    pub socket_file: Option<PathBuf>,
    /// The listener's open sockets, which a child closes.
    sockets: Vec<FileNote>,
}

static STATE: Mutex<ProcessState> =
    Mutex::new(ProcessState { memory: LogMemory::new(), socket_file: None, sockets: Vec::new() });

/// The state, for this thread alone. It must not be held for long, because a fork waits for it.
pub(crate) fn lock() -> MutexGuard<'static, ProcessState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProcessState {
    /// Notes a socket that was opened under the same lock.
    pub fn opened(&mut self, socket: &Descriptor) {
        self.sockets.push(socket.note());
    }

    /// Forgets a socket that is about to be closed. If the process forks before it is closed, the child has
    /// one descriptor too many, but the other side has seen the end of the connection by then.
    pub fn closing(&mut self, socket: &Descriptor) {
        if let Ok(socket) = socket.get() {
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
        self.sockets.retain(|&noted| noted != socket.note());
    }

    /// In the child of a fork: the sockets and their file are the parent's.
    pub fn leave_to_parent(&mut self) {
        // The listener, which owns them, does not exist in the child, so nothing else closes them.
        self.sockets.drain(..).for_each(FileNote::close);
        self.socket_file = None;
    }
}
