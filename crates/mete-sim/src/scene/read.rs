//! A read from a disk, and the task that asks for it.
//!
//! A leaf: every part of the scene may use it, and it uses only [`packet`](super::packet).

use mete_policy::{ClientId, RequestId};

use super::packet::Peer;

/// A task, named by its client and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskId {
    /// The client. Of a guest with several virtual processors it is the first, wherever the task runs.
    pub client: ClientId,
    /// The task's number in the client; 0 where the client is the task.
    pub task: u16,
}

impl TaskId {
    /// Whether `peer` is a port of the task's own client.
    pub(super) fn is_at(self, peer: Peer) -> bool {
        matches!(peer, Peer::Client { client, .. } if client == self.client)
    }
}

/// A read from a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) who: TaskId,
    /// The client that asks and gets the answer. For a guest it is the virtual processor that sends the read.
    pub(super) on: ClientId,
    pub(super) request: RequestId,
    pub(super) disk: usize,
    pub(super) bytes: u64,
    /// The read goes on where this task's last read from the disk ended.
    pub(super) goes_on: bool,
}
