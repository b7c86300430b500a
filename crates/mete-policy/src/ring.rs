//! Clients in turn: the shared part of the round-robin family.
//!
//! All ready clients stand in one queue, and the client at its head runs next. A policy of the family,
//! [round robin](crate::round_robin), [weighted](crate::wrr) or [deficit](crate::drr), decides two things
//! only: how long a turn lasts, and where a client stands after it. That is its [`Turns`].

use crate::queue::Queues;
use crate::roster::{ClientState, Roster};
use crate::{ClientId, Decision, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// Where a client that has stopped and is still ready stands in the queue.
pub enum QueueEnd {
    /// Before all others: the client goes on with its turn.
    Head,
    /// Behind all others: the client's turn is over.
    Tail,
}

/// The turns of one policy. The clients in its calls are below [`Setup::clients`].
pub trait Turns {
    /// The policy's name with these turns.
    const NAME: &'static str;
    /// No client has a turn.
    fn new(setup: &Setup) -> Self;
    /// Forgets the turn of the client that had this number before.
    fn reset(&mut self, client: ClientId);
    /// Begins a client's turn, or goes on with it, and answers the slice: at least 1 ns.
    fn open(&mut self, client: ClientId, share: Share) -> Nanoseconds;
    /// Counts what a client ran, and ends its turn unless that goes on: the answer says which, for a client
    /// that is still ready.
    fn close(&mut self, client: ClientId, share: Share, ran_ns: Nanoseconds, stop: Stop) -> QueueEnd;
}

/// Round robin with some turns.
pub struct Ring<T> {
    roster: Roster,
    queue: Queues,
    turns: T,
}

impl<T: Turns> Ring<T> {
    /// A policy without clients.
    pub fn new(setup: &Setup) -> Ring<T> {
        Ring { roster: Roster::new(setup), queue: Queues::new(1, setup.clients), turns: T::new(setup) }
    }
}

impl<T: Turns> Policy for Ring<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.turns.reset(client);
        }
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        // A running client is not in the queue, and a blocked one is not either.
        if self.roster.remove(client) == ClientState::Ready {
            self.queue.remove(0, client);
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        // No place in the queue depends on a share; the turns read it when they begin or end.
        self.roster.set_share(client, share);
    }

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            self.queue.push_back(0, client);
        }
        // A turn lasts to its end: no policy of this family takes a processor from a client.
        None
    }

    fn pick(&mut self, processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        let client = self.queue.pop_front(0)?;
        self.roster.run(client);
        let slice_ns = self.turns.open(client, self.roster.share(client));
        Some(Decision::by_share(client, slice_ns))
    }

    /// No client displaces another one.
    fn keeps(&self, _processor: ProcessorId) -> bool {
        true
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        let Some(state) = self.roster.stop(client, stop) else { return };
        // A client that blocks is charged, too: deficit round robin remembers its debt.
        let end = self.turns.close(client, self.roster.share(client), ran_ns, stop);
        if state == ClientState::Ready {
            match end {
                QueueEnd::Head => self.queue.push_front(0, client),
                QueueEnd::Tail => self.queue.push_back(0, client),
            }
        }
    }
}
