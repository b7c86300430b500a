//! Deficit round robin: weighted round robin that carries over what a turn left or overran
//! (Shreedhar and Varghese, *Efficient Fair Queuing using Deficit Round Robin*, SIGCOMM 1995, §3).
//!
//! | | |
//! |---|---|
//! | selection, insertion | constant time |
//! | fairness | after k turns a client has had k times its allotment, less its deficit, which stays within one allotment of zero; between two clients that stay ready, the services divided by the shares differ by at most three quanta |
//! | several processors | one queue serves all; a client larger than a processor's part gets one processor |
//!
//! At its turn a client's deficit counter grows by its allotment, its share times the quantum, and it
//! may run for as long as the counter says. What it leaves when it yields it may use in its next turn
//! (§3: the remainder is kept for the next round); what it overran is taken off there.
//!
//! Where this deviates: the source serves packets, whose lengths are known before they are sent, so
//! a counter is never negative there and a turn ends before the packet that does not fit. A
//! processor's client is timed afterwards. Three rules follow. A debt is at most one nanosecond
//! short of an allotment, so that every turn is a real one and no turn has to be skipped in a loop. A
//! remainder is at most one allotment, so that nobody can save up by yielding. A client that blocks
//! loses its remainder, as an emptied queue does in the source, but not its debt. Who has to give way
//! keeps its place and goes on with its turn.

use alloc::vec;
use alloc::vec::Vec;

use crate::ring::Ring;
use crate::roster::State;
use crate::{ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

#[derive(Clone, Copy, Default)]
struct Account {
    /// What the client may still run, or what it overran. Within two allotments of zero, each of
    /// which fits a u64.
    deficit_ns: i128,
    /// It has had this turn's allotment already.
    in_turn: bool,
}

/// The deficit round-robin policy.
pub struct DeficitRoundRobin {
    ring: Ring,
    accounts: Vec<Account>,
    quantum_ns: Nanoseconds,
}

impl DeficitRoundRobin {
    /// A policy without clients.
    #[must_use]
    pub fn new(setup: &Setup) -> DeficitRoundRobin {
        DeficitRoundRobin {
            ring: Ring::new(setup),
            accounts: vec![Account::default(); setup.clients as usize],
            quantum_ns: setup.quantum_ns.max(1),
        }
    }

    fn allotment_ns(&self, client: ClientId) -> i128 {
        self.quantum_ns.saturating_mul(self.ring.roster.share(client).get().into()).into()
    }

    /// Begins a turn, or goes on with one; what the client may run, at least 1 ns.
    fn open_turn(&mut self, client: ClientId) -> Nanoseconds {
        let allotment_ns = self.allotment_ns(client);
        let account = &mut self.accounts[client as usize];
        if !account.in_turn {
            // The share may have shrunk since the debt was made.
            account.deficit_ns = account.deficit_ns.max(1 - allotment_ns) + allotment_ns;
            account.in_turn = true;
        }
        Nanoseconds::try_from(account.deficit_ns).unwrap_or(Nanoseconds::MAX).max(1)
    }

    fn charge(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        let least_ns = 1 - self.allotment_ns(client);
        let account = &mut self.accounts[client as usize];
        account.deficit_ns = (account.deficit_ns - i128::from(ran_ns)).max(least_ns);
    }

    /// Ends a turn; at most `keep_ns` of what is left are carried over.
    fn close_turn(&mut self, client: ClientId, keep_ns: i128) {
        let account = &mut self.accounts[client as usize];
        account.deficit_ns = account.deficit_ns.min(keep_ns);
        account.in_turn = false;
    }
}

impl Policy for DeficitRoundRobin {
    fn name(&self) -> &'static str {
        "drr"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.ring.roster.add(client, domain, share) {
            self.accounts[client as usize] = Account::default();
        }
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        self.ring.remove(client);
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        self.ring.roster.set_share(client, share);
    }

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        self.ring.wake(client);
        None
    }

    fn pick(&mut self, processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        let client = self.ring.next(processor)?;
        Some(Decision { client, slice_ns: self.open_turn(client), grant: Grant::Share })
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        let Some(next) = self.ring.roster.stop(client, stop) else { return };
        self.charge(client, ran_ns);
        if next == State::Blocked {
            self.close_turn(client, 0);
        } else if stop == Stop::Preempted && self.accounts[client as usize].deficit_ns > 0 {
            self.ring.push_front(client);
        } else {
            self.close_turn(client, self.allotment_ns(client));
            self.ring.push_back(client);
        }
    }
}
