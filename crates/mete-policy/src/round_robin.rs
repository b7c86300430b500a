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

use crate::ring::Ring;
use crate::roster::State;
use crate::{ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// The round-robin policy.
pub struct RoundRobin {
    ring: Ring,
    quantum_ns: Nanoseconds,
}

impl RoundRobin {
    /// A policy without clients.
    #[must_use]
    pub fn new(setup: &Setup) -> RoundRobin {
        RoundRobin { ring: Ring::new(setup), quantum_ns: setup.quantum_ns.max(1) }
    }
}

impl Policy for RoundRobin {
    fn name(&self) -> &'static str {
        "rr"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        self.ring.roster.add(client, domain, share);
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        self.ring.remove(client);
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        self.ring.roster.set_share(client, share);
    }

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        self.ring.wake(client);
        None
    }

    fn pick(&mut self, processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        let client = self.ring.next(processor)?;
        Some(Decision { client, slice_ns: self.quantum_ns, grant: Grant::Share })
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        if self.ring.roster.stop(client, stop) != Some(State::Ready) {
            return;
        }
        if stop == Stop::Preempted && ran_ns == 0 {
            self.ring.push_front(client);
        } else {
            self.ring.push_back(client);
        }
    }
}
