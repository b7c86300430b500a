//! Stride scheduling: every client has a stride, inverse to its share. The client with the least pass runs
//! next, and its pass goes on by its stride.
//!
//! Source: Waldspurger and Weihl, "Stride Scheduling: Deterministic Proportional-Share Resource
//! Management", 1995, §2 (basic algorithm, dynamic client participation, dynamic ticket modifications,
//! nonuniform quanta). A pass here is a virtual finishing time, a stride a quantum in virtual time, and
//! the global pass the system's clock, which goes on by the service divided by the sum of shares.
//!
//! | | |
//! |---|---|
//! | selection and insertion together | O(log N), and a step for each processor |
//! | between two clients that stay ready | less than one quantum of error, however long (§2) |
//! | behind the ideal; ahead of it | less than one quantum; up to as many quanta as there are clients |
//! | several processors | one queue serves all; at most a quantum a processor behind, as for [`Wfq`](crate::Wfq) |
//!
//! The bound on several processors holds while no share is more than one processor; otherwise there is none.
//!
//! A client that leaves or blocks keeps the distance of its pass from the global pass (`remain` in the
//! source) and has it again when it comes back: neither a lag nor a lead is forgotten, and neither grows by
//! sleeping. This is the difference from [`Wfq`](crate::Wfq), which forgets a lag. A change of share keeps
//! the distance as service. The pairwise bound holds between wake-ups and changes of these two shares.
//!
//! Deviations: none in which client runs when. Passes have 96 bits and need no new origin. The source's
//! fixed-point strides lose the remainders of divisions; these do not.

use alloc::vec;
use alloc::vec::Vec;

use crate::fair_queueing::{FairQueue, FairQueueing};
use crate::heap::Heap;
use crate::virtual_clock::VirtualClock;
use crate::virtual_time::{Account, VirtualTime, rescaled, shifted};
use crate::{ClientId, Share};

/// The stride policy.
pub type Stride = FairQueueing<Passes>;

/// Ready clients by their passes.
pub struct Passes {
    heap: Heap,
    /// How far each blocked client was ahead of the global pass when it left, less one stride.
    remains: Vec<i128>,
}

impl FairQueue for Passes {
    const NAME: &'static str = "stride";
    /// The order does not depend on the global pass.
    const LOOKS_AT_CLOCK: bool = false;

    fn new(clients: u32) -> Passes {
        Passes { heap: Heap::new(clients), remains: vec![0; clients as usize] }
    }

    fn push(&mut self, client: ClientId, account: &Account) {
        self.heap.push(account.finish(), client);
    }

    fn pop(&mut self, _accounts: &[Account], _clock: &mut VirtualClock) -> Option<ClientId> {
        self.heap.pop()
    }

    fn remove(&mut self, client: ClientId) {
        self.heap.remove(client);
    }

    fn leaves(&mut self, client: ClientId, ahead: i128) {
        self.remains[client.index()] = ahead;
    }

    fn rescale(&mut self, client: ClientId, from: Share, to: Share) {
        let remain = &mut self.remains[client.index()];
        // A remain is a distance in virtual time: the same service at the new rate (§2, ticket
        // modifications).
        *remain = rescaled(*remain, from, to);
    }

    fn joins(&self, client: ClientId, account: &mut Account, now: VirtualTime) {
        // The join of the source: pass = global pass + remain (§2, dynamic client participation).
        account.move_to(shifted(now, self.remains[client.index()]));
    }
}
