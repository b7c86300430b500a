//! Round robin: everybody in turn, one quantum each; shares are ignored (VTRR paper, §2.1).
//!
//! | | |
//! |---|---|
//! | selection, insertion | constant time |
//! | fairness | equal service whatever the shares; between two clients that stay ready, at most one quantum apart |
//! | several processors | one queue serves all |
//!
//! A client that stops before its quantum's end goes to the tail all the same, so one that blocks often
//! gets less than one that computes.
//!
//! Deviations: none; the paper leaves decisions that are not carried out open. One that is given back before
//! it ran at all is as if it had not been made: the client stays at the head.

use crate::queue::Queues;
use crate::roster::{Roster, State};
use crate::{ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// The round-robin policy.
pub struct RoundRobin {
    roster: Roster,
    queue: Queues,
    quantum_ns: Nanoseconds,
}

impl RoundRobin {
    /// A policy without clients.
    #[must_use]
    pub fn new(setup: &Setup) -> RoundRobin {
        RoundRobin {
            roster: Roster::new(setup),
            queue: Queues::new(1, setup.clients),
            quantum_ns: setup.quantum_ns.max(1),
        }
    }
}

impl Policy for RoundRobin {
    fn name(&self) -> &'static str {
        "rr"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        self.roster.add(client, domain, share);
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        if self.roster.remove(client) == State::Ready {
            self.queue.remove(0, client);
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        self.roster.set_share(client, share);
    }

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            self.queue.push_back(0, client);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        if !self.roster.has_processor(processor) {
            return None;
        }
        let client = self.queue.pop_front(0)?;
        self.roster.run(client);
        Some(Decision { client, slice_ns: self.quantum_ns, grant: Grant::Share })
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        if self.roster.stop(client, stop) != Some(State::Ready) {
            return;
        }
        if stop == Stop::Preempted && ran_ns == 0 {
            self.queue.push_front(0, client);
        } else {
            self.queue.push_back(0, client);
        }
    }
}
