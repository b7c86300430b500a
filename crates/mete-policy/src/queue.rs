//! Intrusive first-in first-out queues over dense client numbers.
//!
//! Several queues share one set of links, because a client is in one queue at most. Every operation takes
//! constant time and allocates nothing. Operations are marked `inline` because policies call them on the
//! decision path from other codegen units.

use alloc::vec;
use alloc::vec::Vec;

use crate::ClientId;

/// No client: the end of a queue.
const NONE: ClientId = ClientId::MAX;

#[derive(Clone, Copy)]
struct Links {
    next: ClientId,
    previous: ClientId,
}

const UNLINKED: Links = Links { next: NONE, previous: NONE };

/// Several queues; each client is in one of them at most. The owner knows in which.
pub(crate) struct Queues {
    links: Vec<Links>,
    /// The first and the last client of each queue, stored as a ring's `next` and `previous`.
    ends: Vec<Links>,
}

impl Queues {
    pub(crate) fn new(queues: usize, clients: u32) -> Queues {
        Queues { links: vec![UNLINKED; clients as usize], ends: vec![UNLINKED; queues] }
    }

    #[inline]
    pub(crate) fn front(&self, queue: usize) -> Option<ClientId> {
        some(self.ends[queue].next)
    }

    /// The client that stands behind `client` in its queue.
    #[inline]
    pub(crate) fn next(&self, client: ClientId) -> Option<ClientId> {
        some(self.links[client.index()].next)
    }

    /// Appends a client that is in no queue.
    #[inline]
    pub(crate) fn push_back(&mut self, queue: usize, client: ClientId) {
        let last = self.ends[queue].previous;
        self.links[client.index()] = Links { next: NONE, previous: last };
        self.set_next(queue, last, client);
        self.ends[queue].previous = client;
    }

    /// Puts a client that is in no queue before `next`, which is in this queue.
    pub(crate) fn insert_before(&mut self, queue: usize, next: ClientId, client: ClientId) {
        let previous = self.links[next.index()].previous;
        self.links[client.index()] = Links { next, previous };
        self.set_next(queue, previous, client);
        self.set_previous(queue, next, client);
    }

    /// Puts a client that is in no queue before all others.
    #[inline]
    pub(crate) fn push_front(&mut self, queue: usize, client: ClientId) {
        let first = self.ends[queue].next;
        self.links[client.index()] = Links { next: first, previous: NONE };
        self.set_previous(queue, first, client);
        self.ends[queue].next = client;
    }

    #[inline]
    pub(crate) fn pop_front(&mut self, queue: usize) -> Option<ClientId> {
        let first = self.front(queue)?;
        self.remove(queue, first);
        Some(first)
    }

    /// Takes a client out of the queue that it is in.
    #[inline]
    pub(crate) fn remove(&mut self, queue: usize, client: ClientId) {
        let Links { next, previous } = self.links[client.index()];
        self.set_next(queue, previous, next);
        self.set_previous(queue, next, previous);
        self.links[client.index()] = UNLINKED;
    }

    #[inline]
    fn set_next(&mut self, queue: usize, client: ClientId, next: ClientId) {
        // The end of the queue stands for the missing neighbour, so a list of one needs no case of its own.
        let links = if client == NONE { &mut self.ends[queue] } else { &mut self.links[client.index()] };
        links.next = next;
    }

    #[inline]
    fn set_previous(&mut self, queue: usize, client: ClientId, previous: ClientId) {
        let links = if client == NONE { &mut self.ends[queue] } else { &mut self.links[client.index()] };
        links.previous = previous;
    }
}

#[inline]
fn some(client: ClientId) -> Option<ClientId> {
    (client != NONE).then_some(client)
}
