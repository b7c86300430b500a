//! Clients in turn: who is there, and the one queue in which those who may run stand.
//!
//! What the round-robin family has in common; a policy of that family adds how long a turn lasts and
//! where a client stands after it.

use crate::queue::Queues;
use crate::roster::{Roster, State};
use crate::{ClientId, ProcessorId, Setup};

pub(crate) struct Ring {
    pub(crate) roster: Roster,
    queue: Queues,
}

impl Ring {
    pub(crate) fn new(setup: &Setup) -> Ring {
        Ring { roster: Roster::new(setup), queue: Queues::new(1, setup.clients) }
    }

    pub(crate) fn remove(&mut self, client: ClientId) {
        if self.roster.remove(client) == State::Ready {
            self.queue.remove(0, client);
        }
    }

    /// To the tail, if it was blocked.
    pub(crate) fn wake(&mut self, client: ClientId) {
        if self.roster.wake(client) {
            self.queue.push_back(0, client);
        }
    }

    /// The client at the head, which runs from now on; nobody for a processor that there is not.
    pub(crate) fn next(&mut self, processor: ProcessorId) -> Option<ClientId> {
        if !self.roster.has_processor(processor) {
            return None;
        }
        let client = self.queue.pop_front(0)?;
        self.roster.run(client);
        Some(client)
    }

    /// A ready client comes before all others.
    pub(crate) fn push_front(&mut self, client: ClientId) {
        self.queue.push_front(0, client);
    }

    /// A ready client comes after all others.
    pub(crate) fn push_back(&mut self, client: ClientId) {
        self.queue.push_back(0, client);
    }
}
