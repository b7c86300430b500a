//! TAVS-6: KeepOnRunQ, a client that its driver preempts does not lose its turn (§4.2).
//!
//! It goes to the head of its priority's list and goes on with what was left of its slice. The paper says
//! that it resumes "the execution for its time slice"; a new whole slice at every preemption would give
//! more than its turn to a client that asks its driver often.
//!
//! Here a client whose partial boost is revoked keeps its place, too: it goes back to where it stood. By
//! §3.4 it would be inserted as the original scheduler does, at the tail. Then each of its packets would
//! delay the turn of its other work, and a domain that gets many packets would lose most of its share.
//! Figure 11 shows the contrary ("CPU fairness among guest domains is guaranteed for all cases").
//! If it was boosted in its own turn, which its driver had interrupted, that turn goes on: it is at the head.

use alloc::vec;
use alloc::vec::Vec;

use crate::{ClientId, Nanoseconds};

#[derive(Clone, Copy, Default)]
struct KeptTurn {
    /// The slice that it was given.
    slice_ns: Nanoseconds,
    /// A driver preempts the client.
    by_driver: bool,
    /// What is left of a slice that a driver interrupted.
    left_ns: Nanoseconds,
}

/// All clients' turns; empty where the part is off.
pub(super) struct KeepOnRunQueue {
    turns: Vec<KeptTurn>,
}

impl KeepOnRunQueue {
    pub(super) fn new(clients: u32) -> KeepOnRunQueue {
        KeepOnRunQueue { turns: vec![KeptTurn::default(); clients as usize] }
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        if let Some(turn) = self.turns.get_mut(client.index()) {
            *turn = KeptTurn::default();
        }
    }

    /// Whether something is left of a slice that a driver interrupted.
    pub(super) fn has_left(&self, client: ClientId) -> bool {
        self.turns.get(client.index()).is_some_and(|turn| !turn.left_ns.is_zero())
    }

    /// A driver takes the client's processor.
    pub(super) fn interrupted(&mut self, client: ClientId) {
        if let Some(turn) = self.turns.get_mut(client.index()) {
            turn.by_driver = true;
        }
    }

    /// A client's slice when it is dispatched: what was left, or a whole one.
    pub(super) fn slice_ns(&mut self, client: ClientId, whole_ns: Nanoseconds) -> Nanoseconds {
        let Some(turn) = self.turns.get_mut(client.index()) else { return whole_ns };
        let left_ns = core::mem::take(&mut turn.left_ns);
        turn.slice_ns = if left_ns.is_zero() { whole_ns } else { left_ns };
        turn.by_driver = false;
        turn.slice_ns
    }

    /// A client is dispatched ahead of its turn, which remains as it is.
    pub(super) fn boosted(&mut self, client: ClientId) {
        if let Some(turn) = self.turns.get_mut(client.index()) {
            turn.by_driver = false;
        }
    }

    /// A client was dispatched in its turn, but did not run: what had been left of a whole slice is left
    /// still.
    pub(super) fn given_back(&mut self, client: ClientId, whole_ns: Nanoseconds) {
        if let Some(turn) = self.turns.get_mut(client.index()) {
            turn.by_driver = false;
            // A whole slice needs no note: without one, a whole slice is what it gets.
            if turn.slice_ns < whole_ns {
                turn.left_ns = turn.slice_ns;
            }
        }
    }

    /// A client was preempted. `true`: by a driver, with something left of its slice.
    pub(super) fn preempted(&mut self, client: ClientId, ran_ns: Nanoseconds) -> bool {
        let Some(turn) = self.turns.get_mut(client.index()) else { return false };
        let by_driver = core::mem::take(&mut turn.by_driver);
        // What is left already is that of the turn; a boosted slice in between took nothing from it.
        if by_driver && turn.left_ns.is_zero() {
            turn.left_ns = turn.slice_ns.saturating_sub(ran_ns);
        }
        by_driver && !turn.left_ns.is_zero()
    }
}
