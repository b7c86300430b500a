//! Ready clients, of whom only those may be chosen that are not ahead of the system's virtual time: of
//! these the one with the least virtual finishing time (deadline).
//!
//! Two heaps. A client enters among the due. One that would be chosen and is ahead is set aside, by its
//! virtual time, and comes back when the clock has reached that. So nobody is looked at who is not
//! about to run, and a decision costs hardly more than with one heap. A client is set aside once a
//! quantum at most while the clock does not go back, which makes a decision O(log N) amortised; a single one
//! may move as many clients as have become eligible, or are found ahead, since the last. Where the clock
//! may go back (EEVDF's, when someone joins or leaves), each step may set every client aside once more.

use crate::ClientId;
use crate::heap::Heap;
use crate::virtual_time::{Account, VirtualTime};

pub(crate) struct Eligible {
    /// Everyone who is eligible, and who was not looked at since, by virtual finishing time.
    due: Heap,
    /// Who was found ahead, by virtual time.
    early: Heap,
}

impl Eligible {
    pub(crate) fn new(clients: u32) -> Eligible {
        Eligible { due: Heap::new(clients), early: Heap::new(clients) }
    }

    /// Puts a client in that is not in.
    pub(crate) fn push(&mut self, client: ClientId, account: &Account) {
        self.due.push(account.finish(), client);
    }

    /// Takes out the eligible client that finishes first.
    pub(crate) fn pop(&mut self, accounts: &[Account], now: VirtualTime) -> Option<ClientId> {
        self.admit(accounts, now);
        while let Some(client) = self.due.pop() {
            let time = accounts[client as usize].time();
            if time <= now {
                return Some(client);
            }
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
