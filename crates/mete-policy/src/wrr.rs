//! Weighted round robin: every client in turn, each for a quantum as long as its share (VTRR paper,
//! §2.1).
//!
//! | | |
//! |---|---|
//! | selection, insertion | constant time |
//! | fairness | exact at the end of every round |
//! | several processors | one queue serves all; a client larger than a processor's part gets one processor |
//!
//! Within a round a client may be its whole share of quanta ahead or behind.
//!
//! A client with share S runs S of the paper's time units in a row: one decision whose slice is S
//! quanta. With shares 3, 2, 1 the order is A A A B B C.
//!
//! Deviations: none from the paper; what it leaves open is settled here. A client that has to give way keeps
//! its place at the head and the rest of its turn. The same holds for a decision that is given back. A client
//! that yields, blocks or has used its turn up loses what was left: carrying that over is what
//! [deficit round robin](crate::drr) adds. A new share counts from the client's next turn on.

use alloc::vec;
use alloc::vec::Vec;

use crate::ring::{QueueEnd, Ring, Turns};
use crate::{ClientId, Nanoseconds, Setup, Share, Stop};

/// The weighted round-robin policy.
pub type WeightedRoundRobin = Ring<WeightedTurns>;

/// A quantum for each unit of a client's share.
pub struct WeightedTurns {
    /// What each client has left of its turn; zero between turns.
    left_ns: Vec<Nanoseconds>,
    quantum_ns: Nanoseconds,
}

impl Turns for WeightedTurns {
    const NAME: &'static str = "wrr";

    fn new(setup: &Setup) -> WeightedTurns {
        WeightedTurns {
            left_ns: vec![Nanoseconds::ZERO; setup.clients as usize],
            quantum_ns: setup.quantum_ns.max(Nanoseconds::new(1)),
        }
    }

    fn reset(&mut self, client: ClientId) {
        self.left_ns[client.index()] = Nanoseconds::ZERO;
    }

    #[inline]
    fn open(&mut self, client: ClientId, share: Share) -> Nanoseconds {
        let left_ns = &mut self.left_ns[client.index()];
        // Only a turn that was interrupted has something left, and goes on with that.
        if left_ns.is_zero() {
            *left_ns = self.quantum_ns.saturating_mul(share.get().into());
        }
        *left_ns
    }

    #[inline]
    fn close(&mut self, client: ClientId, _share: Share, ran_ns: Nanoseconds, stop: Stop) -> QueueEnd {
        let left_ns = &mut self.left_ns[client.index()];
        *left_ns = if stop == Stop::Preempted { left_ns.saturating_sub(ran_ns) } else { Nanoseconds::ZERO };
        if left_ns.is_zero() { QueueEnd::Tail } else { QueueEnd::Head }
    }
}
