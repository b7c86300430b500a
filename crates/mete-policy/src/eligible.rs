//! Ready clients, of whom only those may be chosen that are not ahead: eligible ones by virtual
//! finishing time (deadline), the others by virtual time (when they become eligible).
//!
//! Two heaps. A client enters by the one it belongs to and changes over when the clock has passed its
//! virtual time: once a quantum, so that a decision is O(log N) amortised, and that bound is exact for
//! clocks that never go back. Where a clock may (EEVDF's, when someone joins or leaves), a client that is
//! no longer eligible is noticed when it would be chosen and put back; one step back may be paid for by
//! as many such moves as it made clients ineligible.

use crate::ClientId;
use crate::heap::Heap;
use crate::virtual_time::{Account, VirtualTime};

pub(crate) struct Eligible {
    /// Who is known to be ahead of the clock, by virtual time.
    early: Heap,
    /// Who was not when last looked at, by virtual finishing time.
    due: Heap,
}

impl Eligible {
    pub(crate) fn new(clients: u32) -> Eligible {
        Eligible { early: Heap::new(clients), due: Heap::new(clients) }
    }

    /// Puts a client in that is not in.
    pub(crate) fn push(&mut self, client: ClientId, account: &Account, now: VirtualTime) {
        if account.time() > now {
            self.early.push(account.time(), client);
        } else {
            self.due.push(account.finish(), client);
        }
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

    /// Takes out the client that is least ahead: for when nobody is eligible.
    pub(crate) fn pop_least_early(&mut self) -> Option<ClientId> {
        self.early.pop()
    }

    /// The least virtual time of those who are ahead.
    pub(crate) fn least_early(&mut self) -> Option<VirtualTime> {
        self.early.least().map(|(time, _)| time)
    }

    pub(crate) fn remove(&mut self, client: ClientId) {
        if !self.early.remove(client) {
            self.due.remove(client);
        }
    }

    fn admit(&mut self, accounts: &[Account], now: VirtualTime) {
        while let Some((time, client)) = self.early.least() {
            if time > now {
                break;
            }
            self.early.pop();
            self.due.push(accounts[client as usize].finish(), client);
        }
    }
}
