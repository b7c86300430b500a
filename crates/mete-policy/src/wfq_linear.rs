//! Weighted fair queueing with a linear search: the VTRR paper's "WFQ" (§5).
//!
//! The same schedule as [`Wfq`](crate::Wfq), whose documentation has its description, source and bounds, and
//! what it does on several processors. Only the cost differs:
//!
//! | | |
//! |---|---|
//! | selection | O(N): looks at every ready client's virtual finishing time |
//! | insertion, removal | constant time |

use alloc::vec;
use alloc::vec::Vec;

use crate::ClientId;
use crate::fair_queueing::{FairQueue, FairQueueing};
use crate::virtual_clock::VirtualClock;
use crate::virtual_time::{Account, VirtualTime};

/// Weighted fair queueing with a linear search.
pub type WfqLinear = FairQueueing<LinearQueue>;

/// Ready clients in no order.
pub struct LinearQueue {
    waiting: Vec<(VirtualTime, ClientId)>,
    /// Each waiting client's index in `waiting`.
    places: Vec<u32>,
}

impl LinearQueue {
    fn take(&mut self, place: usize) -> ClientId {
        let (_, client) = self.waiting.swap_remove(place);
        // The last client now stands here, unless it was the one that was taken.
        if let Some(&(_, moved)) = self.waiting.get(place) {
            self.places[moved.index()] = place as u32;
        }
        client
    }
}

impl FairQueue for LinearQueue {
    const NAME: &'static str = "wfq-linear";

    fn new(clients: u32) -> LinearQueue {
        LinearQueue { waiting: Vec::with_capacity(clients as usize), places: vec![0; clients as usize] }
    }

    fn push(&mut self, client: ClientId, account: &Account) {
        self.places[client.index()] = self.waiting.len() as u32;
        // Within the capacity: each client waits at most once, so this allocates nothing.
        self.waiting.push((account.finish(), client));
    }

    fn pop(&mut self, _accounts: &[Account], _clock: &mut VirtualClock) -> Option<ClientId> {
        // Pairs of time and client: the smaller number wins ties, as in the heap.
        let (place, _) = self.waiting.iter().enumerate().min_by_key(|&(_, &waiting)| waiting)?;
        Some(self.take(place))
    }

    fn remove(&mut self, client: ClientId) {
        self.take(self.places[client.index()] as usize);
    }
}
