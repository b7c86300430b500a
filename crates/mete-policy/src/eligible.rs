//! Ready clients, of which only those may be chosen that are not ahead of the system's virtual time. Of
//! these the client with the least virtual finishing time (deadline) is chosen.
//!
//! There are two heaps. A client enters the heap of due clients. If a client would be chosen and is ahead, it
//! is set aside by its virtual time, and comes back when the clock has reached that time. So a decision looks
//! only at clients that are about to run, and costs hardly more than with one heap. Where shares differ much,
//! clients with large shares are found ahead again and again. Such a client is set aside at once the next few
//! times. That changes what a decision costs, and never what it decides.
//!
//! While the clock does not go back, a client is set aside at most once a quantum, which makes a decision
//! O(log N) amortised. A single decision may move all the clients that have become eligible, or are found
//! ahead, since the last. Where the clock may go back (EEVDF's, when a client joins or leaves), each such
//! step may set every client aside once more.

use alloc::vec;
use alloc::vec::Vec;

use crate::ClientId;
use crate::fair_queueing::FairQueue;
use crate::heap::Heap;
use crate::virtual_clock::VirtualClock;
use crate::virtual_time::{Account, VirtualTime};

/// How often a client that was found ahead is set aside unseen. Then the guess is tried again, in one quantum
/// of eight. A larger number would save little where the guess is right, and cost for longer once it is
/// wrong.
const UNSEEN: u8 = 7;

pub struct Eligible {
    /// Clients that are eligible, or were not looked at since they entered, by virtual finishing time.
    due: Heap,
    /// Clients that were found ahead, or are expected to be, by virtual time.
    early: Heap,
    /// How often each client will still be set aside unseen.
    unseen: Vec<u8>,
    /// The clock when a client was last chosen.
    seen_at: VirtualTime,
}

impl FairQueue for Eligible {
    const NAME: &'static str = "wf2q+";

    fn new(clients: u32) -> Eligible {
        Eligible {
            due: Heap::new(clients),
            early: Heap::new(clients),
            unseen: vec![0; clients as usize],
            seen_at: 0,
        }
    }

    fn push(&mut self, client: ClientId, account: &Account) {
        let unseen = &mut self.unseen[client.index()];
        // A client that is not beyond that clock was eligible then: there is nothing to guess.
        if *unseen > 0 && account.time() > self.seen_at {
            *unseen -= 1;
            self.early.push(account.time(), client);
        } else {
            self.due.push(account.finish(), client);
        }
    }

    /// The first eligible client; if there is none, the clock jumps until there is.
    fn pop(&mut self, accounts: &[Account], clock: &mut VirtualClock) -> Option<ClientId> {
        if let Some(client) = self.pop_eligible(accounts, clock.now()) {
            return Some(client);
        }
        // The least start is eligible at its own time, so the second search finds a client.
        let (least, _) = self.early.least()?;
        clock.raise_to(least);
        self.pop_eligible(accounts, clock.now())
    }

    fn remove(&mut self, client: ClientId) {
        if !self.due.remove(client) {
            self.early.remove(client);
        }
    }
}

impl Eligible {
    /// Takes out the eligible client that finishes first.
    pub(crate) fn pop_eligible(&mut self, accounts: &[Account], now: VirtualTime) -> Option<ClientId> {
        self.seen_at = now;
        // Before any is chosen: a client that was set aside may now be the first to finish.
        self.admit(accounts, now);
        while let Some(client) = self.due.pop() {
            let time = accounts[client.index()].time();
            if time <= now {
                return Some(client);
            }
            // The heap of due clients does not show which are ahead. This look has shown it, and is
            // remembered.
            self.unseen[client.index()] = UNSEEN;
            self.early.push(time, client);
        }
        None
    }

    /// When no client is eligible: takes out the client that is least ahead.
    pub(crate) fn pop_least_early(&mut self) -> Option<ClientId> {
        self.early.pop()
    }

    /// Lets clients back in that the clock has reached.
    fn admit(&mut self, accounts: &[Account], now: VirtualTime) {
        while let Some((_, client)) = self.early.least().filter(|&(time, _)| time <= now) {
            self.early.pop();
            self.due.push(accounts[client.index()].finish(), client);
        }
    }
}
