//! WF²Q+: of the clients that are not ahead, the one with the smallest virtual finishing time.
//!
//! Source: Bennett and Zhang, "Hierarchical Packet Fair Queueing Algorithms", 1996, whose one-level server
//! is WF²Q+ (a cheaper virtual time for the WF²Q of their "Worst-case Fair Weighted Fair Queueing", 1996).
//! A client may be chosen when its virtual time (its next quantum's start) is not beyond the system's;
//! among those the smallest virtual finishing time is first. When nobody may, the system's virtual time
//! jumps to the least start, so no time is lost.
//!
//! | | |
//! |---|---|
//! | selection and insertion together | O(log N) amortised: a client is set aside as too early once a quantum at most; one decision may move many |
//! | behind the ideal, ahead of it | less than one quantum each, among clients that stay ready |
//! | several processors | one queue serves all, and the clock also jumps past clients that run; while no share is more than one processor, random trials found no error beyond a quantum a processor either way (not proved); otherwise no bound |
//!
//! The bounds hold from a client's wake-up on while others wake and stop before their quantum's end. Who
//! leaves while ahead adds its lead, less than a quantum, over the remaining shares to the others' lag;
//! who leaves while behind leaves the others ahead by that much, and the clock jumps.
//!
//! A woken client starts at the system's virtual time or at its own, whichever is later (the source's
//! rule for a packet that finds its session empty): sleeping saves nothing up.
//!
//! Deviations: the source's clock goes by reserved rates, this one by the shares of those who are
//! runnable, so that all time is shared out. Partial quanta are charged by what was used. On a change of
//! share a client's distance from the system's virtual time stays the same service.

use alloc::vec::Vec;

use crate::eligible::Eligible;
use crate::roster::{Roster, State};
use crate::virtual_clock::VirtualClock;
use crate::virtual_time::{Account, ORIGIN, quantum_ns, service};
use crate::{ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// The WF²Q+ policy.
pub struct Wf2q {
    roster: Roster,
    accounts: Vec<Account>,
    clock: VirtualClock,
    queue: Eligible,
    quantum_ns: Nanoseconds,
}

impl Wf2q {
    /// A policy without clients.
    #[must_use]
    pub fn new(setup: &Setup) -> Wf2q {
        Wf2q {
            roster: Roster::new(setup),
            accounts: Account::all(setup),
            clock: VirtualClock::new(),
            queue: Eligible::new(setup.clients),
            quantum_ns: quantum_ns(setup),
        }
    }

    fn push(&mut self, client: ClientId) {
        self.queue.push(client, &self.accounts[client as usize]);
    }

    /// The first eligible client; if there is none, the clock jumps until there is.
    fn pop(&mut self) -> Option<ClientId> {
        let now = self.clock.now();
        if let Some(client) = self.queue.pop(&self.accounts, now) {
            return Some(client);
        }
        self.clock.raise_to(self.queue.least_early()?);
        self.queue.pop(&self.accounts, self.clock.now())
    }
}

impl Policy for Wf2q {
    fn name(&self) -> &'static str {
        "wf2q+"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.accounts[client as usize] = Account::new(share, self.quantum_ns, ORIGIN);
        }
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        let state = self.roster.remove(client);
        if state == State::Ready {
            self.queue.remove(client);
        }
        if matches!(state, State::Ready | State::Running) {
            self.clock.leave(self.accounts[client as usize].share());
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        let state = self.roster.set_share(client, share);
        if state == State::Absent {
            return;
        }
        let now = self.clock.now();
        let account = &mut self.accounts[client as usize];
        let before = account.share();
        account.set_share(share, self.quantum_ns, now);
        if state != State::Blocked {
            self.clock.leave(before);
            self.clock.join(share);
        }
        if state == State::Ready {
            self.queue.remove(client);
            self.push(client);
        }
    }

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            let now = self.clock.now();
            let account = &mut self.accounts[client as usize];
            account.not_before(now);
            self.clock.join(account.share());
            self.push(client);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        if !self.roster.has_processor(processor) {
            return None;
        }
        let client = self.pop()?;
        self.roster.run(client);
        Some(Decision { client, slice_ns: self.quantum_ns, grant: Grant::Share })
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        let Some(state) = self.roster.stop(client, stop) else { return };
        self.accounts[client as usize].charge(ran_ns);
        self.clock.advance(service(ran_ns));
        if state == State::Ready {
            self.push(client);
        } else {
            self.clock.leave(self.accounts[client as usize].share());
        }
    }
}
