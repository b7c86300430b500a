//! Ready clients, of whom only those may be chosen that are not ahead of the system's virtual time: of
//! these the one with the least virtual finishing time (deadline).
//!
//! Two heaps. A client enters among the due. One that would be chosen and is ahead is set aside, by its
//! virtual time, and comes back when the clock has reached that. So nobody is looked at who is not
//! about to run, and a decision costs hardly more than with one heap. Where shares differ much, those who
//! have large ones are found ahead again and again; whoever was is set aside at once the next few times.
//! That decides what a decision costs and never how it turns out.
//!
//! A client is set aside once a quantum at most while the clock does not go back, which makes a decision
//! O(log N) amortised; a single one may move as many clients as have become eligible, or are found ahead,
//! since the last. Where the clock may go back (EEVDF's, when someone joins or leaves), each step may set
//! every client aside once more.

use alloc::vec;
use alloc::vec::Vec;

use crate::ClientId;
use crate::heap::Heap;
use crate::virtual_time::{Account, VirtualTime};

/// How often a client that was found ahead is set aside unseen: then the guess is tried again, in one quantum
/// of eight. More would save little where it is right, and cost for longer once it no longer is.
const UNSEEN: u8 = 7;

pub struct Eligible {
    /// Everyone who is eligible, and who was not looked at since, by virtual finishing time.
    due: Heap,
    /// Who was found ahead, or is expected to be, by virtual time.
    early: Heap,
    /// How often more each client is set aside unseen.
    unseen: Vec<u8>,
    /// The clock when somebody was last chosen.
    seen_at: VirtualTime,
}

impl Eligible {
    pub(crate) fn new(clients: u32) -> Eligible {
        Eligible {
            due: Heap::new(clients),
            early: Heap::new(clients),
            unseen: vec![0; clients as usize],
            seen_at: 0,
        }
    }

    /// Puts a client in that is not in.
    pub(crate) fn push(&mut self, client: ClientId, account: &Account) {
        let unseen = &mut self.unseen[client as usize];
        if *unseen > 0 && account.time() > self.seen_at {
            *unseen -= 1;
            self.early.push(account.time(), client);
        } else {
            self.due.push(account.finish(), client);
        }
    }

    /// Takes out the eligible client that finishes first.
    pub(crate) fn pop(&mut self, accounts: &[Account], now: VirtualTime) -> Option<ClientId> {
        self.seen_at = now;
        self.admit(accounts, now);
        while let Some(client) = self.due.pop() {
            let time = accounts[client as usize].time();
            if time <= now {
                return Some(client);
            }
            self.unseen[client as usize] = UNSEEN;
            self.early.push(time, client);
        }
        None
    }

    /// When nobody is eligible: takes out the client that is least ahead.
    pub(crate) fn pop_least_early(&mut self) -> Option<ClientId> {
        self.early.pop()
    }

    /// When nobody is eligible: the virtual time at which somebody is.
    pub(crate) fn least_early(&self) -> Option<VirtualTime> {
        self.early.least().map(|(time, _)| time)
    }

    pub(crate) fn remove(&mut self, client: ClientId) {
        if !self.due.remove(client) {
            self.early.remove(client);
        }
    }

    /// Lets those back in whom the clock has reached.
    fn admit(&mut self, accounts: &[Account], now: VirtualTime) {
        while let Some((_, client)) = self.early.least().filter(|&(time, _)| time <= now) {
            self.early.pop();
            self.due.push(accounts[client as usize].finish(), client);
        }
    }
}
