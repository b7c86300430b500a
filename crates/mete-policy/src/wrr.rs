//! Weighted round robin: everybody in turn, each for a quantum as long as its share (VTRR paper,
//! §2.1).
//!
//! | | |
//! |---|---|
//! | selection, insertion | constant time |
//! | fairness | exact at the end of every round; within a round a client may be its whole share of quanta ahead or behind |
//! | several processors | one queue serves all; a client larger than a processor's part gets one processor |
//!
//! A client with share S runs S of the paper's time units in a row: one decision whose slice is S
//! quanta. With shares 3, 2, 1 the order is A A A B B C.
//!
//! Deviations: none from the paper; what it leaves open is settled here. Who has to give way keeps its place
//! at the head and the rest of its turn, and so does a decision that is given back. Who yields, blocks or is
//! through loses what was left: carrying it over is what [deficit round robin](crate::drr) adds. A new
//! share counts from the client's next turn on.

use alloc::vec;
use alloc::vec::Vec;

use crate::ring::Ring;
use crate::roster::State;
use crate::{ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// The weighted round-robin policy.
pub struct WeightedRoundRobin {
    ring: Ring,
    /// What each client has left of its turn; zero between turns.
    left_ns: Vec<Nanoseconds>,
    quantum_ns: Nanoseconds,
}

impl WeightedRoundRobin {
    /// A policy without clients.
    #[must_use]
    pub fn new(setup: &Setup) -> WeightedRoundRobin {
        WeightedRoundRobin {
            ring: Ring::new(setup),
            left_ns: vec![0; setup.clients as usize],
            quantum_ns: setup.quantum_ns.max(1),
        }
    }

    fn turn_ns(&self, client: ClientId) -> Nanoseconds {
        self.quantum_ns.saturating_mul(self.ring.roster.share(client).get().into())
    }
}

impl Policy for WeightedRoundRobin {
    fn name(&self) -> &'static str {
        "wrr"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.ring.roster.add(client, domain, share) {
            self.left_ns[client as usize] = 0;
        }
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
        let turn_ns = self.turn_ns(client);
        let left_ns = &mut self.left_ns[client as usize];
        if *left_ns == 0 {
            *left_ns = turn_ns;
        }
        Some(Decision { client, slice_ns: *left_ns, grant: Grant::Share })
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        let Some(next) = self.ring.roster.stop(client, stop) else { return };
        let left_ns = &mut self.left_ns[client as usize];
        *left_ns = if stop == Stop::Preempted { left_ns.saturating_sub(ran_ns) } else { 0 };
        match next {
            State::Ready if *left_ns > 0 => self.ring.push_front(client),
            State::Ready => self.ring.push_back(client),
            _ => {}
        }
    }
}
