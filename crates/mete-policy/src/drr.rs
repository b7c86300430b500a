//! Deficit round robin: weighted round robin that carries over what a turn left or overran
//! (Shreedhar and Varghese, *Efficient Fair Queuing using Deficit Round Robin*, SIGCOMM 1995, §3).
//!
//! | | |
//! |---|---|
//! | selection, insertion | constant time |
//! | fairness | after k turns: k times its allotment, less a deficit within one allotment of zero |
//! | several processors | one queue serves all; a client larger than a processor's part gets one processor |
//!
//! The services of two clients that stay ready, divided by their shares, differ by at most three quanta.
//!
//! At its turn a client's deficit counter grows by its allotment, its share times the quantum, and the client
//! may run for as long as the counter says. A client that yields may use what it leaves in its next turn
//! (§3: the remainder is kept for the next round). What a client overran is taken off there.
//!
//! Where this deviates: the source serves packets, whose lengths are known before they are sent. There a
//! counter is never negative, and a turn ends before the packet that does not fit. A processor's client is
//! timed afterwards. Three rules follow:
//!
//! * A debt is at most an allotment less one nanosecond, so that every turn is a real one and no turn has to
//!   be skipped in a loop.
//! * A remainder is at most one allotment, so that no client can save up time by yielding.
//! * A client that blocks loses its remainder, as an emptied queue does in the source, but keeps its debt.
//!
//! A client that has to give way keeps its place and goes on with its turn.

use alloc::vec;
use alloc::vec::Vec;

use crate::ring::{QueueEnd, Ring, Turns};
use crate::{ClientId, Nanoseconds, Setup, Share, Stop};

/// The deficit round-robin policy.
pub type DeficitRoundRobin = Ring<DeficitTurns>;

#[derive(Clone, Copy, Default)]
struct Deficit {
    /// What the client may still run; negative for what it overran. Within two allotments of zero, each of
    /// which fits a u64.
    left_ns: i128,
    /// The client has had this turn's allotment already.
    in_turn: bool,
}

impl Deficit {
    /// Ends a turn; at most `keep_ns` of what is left are carried over.
    fn end_turn(&mut self, keep_ns: i128) {
        self.left_ns = self.left_ns.min(keep_ns);
        self.in_turn = false;
    }
}

/// A quantum for each unit of a client's share, and what its turns before left or overran.
pub struct DeficitTurns {
    deficits: Vec<Deficit>,
    quantum_ns: Nanoseconds,
}

impl DeficitTurns {
    fn allotment_ns(&self, share: Share) -> i128 {
        self.quantum_ns.saturating_mul(share.get().into()).get().into()
    }
}

impl Turns for DeficitTurns {
    const NAME: &'static str = "drr";

    fn new(setup: &Setup) -> DeficitTurns {
        DeficitTurns {
            deficits: vec![Deficit::default(); setup.clients as usize],
            quantum_ns: setup.quantum_ns.max(Nanoseconds::new(1)),
        }
    }

    fn reset(&mut self, client: ClientId) {
        self.deficits[client.index()] = Deficit::default();
    }

    #[inline]
    fn open(&mut self, client: ClientId, share: Share) -> Nanoseconds {
        let allotment_ns = self.allotment_ns(share);
        let deficit = &mut self.deficits[client.index()];
        if !deficit.in_turn {
            // The share may have shrunk since the debt was made, and the debt must not exceed an allotment.
            deficit.left_ns = deficit.left_ns.max(1 - allotment_ns) + allotment_ns;
            deficit.in_turn = true;
        }
        // Always positive here; a remainder and an allotment together may exceed a u64.
        Nanoseconds::new(u64::try_from(deficit.left_ns).unwrap_or(u64::MAX).max(1))
    }

    #[inline]
    fn close(&mut self, client: ClientId, share: Share, ran_ns: Nanoseconds, stop: Stop) -> QueueEnd {
        let allotment_ns = self.allotment_ns(share);
        let deficit = &mut self.deficits[client.index()];
        // The next allotment has to exceed the debt, or the next turn would have no time (§3 skips such
        // turns).
        deficit.left_ns = (deficit.left_ns - i128::from(ran_ns)).max(1 - allotment_ns);
        if stop == Stop::Preempted && deficit.left_ns > 0 {
            return QueueEnd::Head;
        }
        deficit.end_turn(if stop == Stop::Blocked { 0 } else { allotment_ns });
        QueueEnd::Tail
    }
}
