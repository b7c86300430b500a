//! Round robin: every client in turn, one quantum each; shares are ignored (VTRR paper, §2.1).
//!
//! | | |
//! |---|---|
//! | selection, insertion | constant time |
//! | fairness | equal service whatever the shares; between two clients that stay ready, at most one quantum apart |
//! | several processors | one queue serves all |
//!
//! A client that stops before the end of its quantum goes to the tail all the same. So a client that blocks
//! often gets less than one that computes.
//!
//! Deviations: none. The paper does not say what happens to a decision that is not carried out. Here a
//! decision that is given back before the client ran at all counts as not made: the client stays at the head.

use crate::ring::{QueueEnd, Ring, Turns};
use crate::{ClientId, Nanoseconds, Setup, Share, Stop};

/// The round-robin policy.
pub type RoundRobin = Ring<EqualTurns>;

/// One quantum for every client.
pub struct EqualTurns {
    quantum_ns: Nanoseconds,
}

impl Turns for EqualTurns {
    const NAME: &'static str = "rr";

    fn new(setup: &Setup) -> EqualTurns {
        EqualTurns { quantum_ns: setup.quantum_ns.max(Nanoseconds::new(1)) }
    }

    fn reset(&mut self, _client: ClientId) {}

    #[inline]
    fn open(&mut self, _client: ClientId, _share: Share) -> Nanoseconds {
        self.quantum_ns
    }

    #[inline]
    fn close(&mut self, _client: ClientId, _share: Share, ran_ns: Nanoseconds, stop: Stop) -> QueueEnd {
        // Preempted without having run: the decision was given back.
        if stop == Stop::Preempted && ran_ns.is_zero() { QueueEnd::Head } else { QueueEnd::Tail }
    }
}
