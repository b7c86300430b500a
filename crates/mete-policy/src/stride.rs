//! Stride scheduling: every client has a stride, inverse to its share. The client with the least pass runs next,
//! and its pass goes on by its stride.
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
//! | several processors | one queue serves all; while no share is more than one processor, at most a quantum a processor behind, as for [`Wfq`](crate::Wfq); otherwise no bound |
//!
//! A client that leaves or blocks keeps the distance of its pass from the global pass (`remain` in the source)
//! and has it again when it comes back: neither a lag nor a lead is forgotten, and neither grows by sleeping.
//! This is the difference from [`Wfq`](crate::Wfq), which forgets a lag. A change of share keeps the
//! distance as service. The pairwise bound holds between wake-ups and changes of these two shares.
//!
//! Deviations: none in which client runs when. Passes have 96 bits and need no new origin. The source's
//! fixed-point strides lose the remainders of divisions; these do not.

use alloc::vec;
use alloc::vec::Vec;

use crate::heap::Heap;
use crate::progress::Progress;
use crate::roster::{ClientState, Roster};
use crate::virtual_clock::VirtualClock;
use crate::virtual_time::{Account, ORIGIN, lead, quantum_ns, rescaled, service, shifted};
use crate::{ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// The stride policy.
pub struct Stride {
    roster: Roster,
    accounts: Vec<Account>,
    /// How far each blocked client was ahead of the global pass when it left, less one stride.
    remains: Vec<i128>,
    global: VirtualClock,
    progress: Progress,
    queue: Heap,
    quantum_ns: Nanoseconds,
}

impl Stride {
    /// A policy without clients.
    pub fn new(setup: &Setup) -> Stride {
        Stride {
            roster: Roster::new(setup),
            accounts: Account::all(setup),
            remains: vec![0; setup.clients as usize],
            global: VirtualClock::new(),
            progress: Progress::new(setup, quantum_ns(setup)),
            queue: Heap::new(setup.clients),
            quantum_ns: quantum_ns(setup),
        }
    }

    fn push(&mut self, client: ClientId) {
        self.queue.push(self.accounts[client.index()].finish(), client);
    }

    /// Lets the global pass go on by what running clients have used up to now.
    fn catch_up(&mut self, now: Nanoseconds) {
        self.progress.advance_clock(now, &mut self.global);
    }

    /// Changes the share of a client that is ready or running.
    fn change_active(&mut self, client: ClientId, share: Share) {
        let global = self.global.now();
        let account = &mut self.accounts[client.index()];
        self.global.leave(account.share());
        account.set_share(share, self.quantum_ns, global);
        self.global.join(share);
        // A running client is not in the queue.
        if self.queue.remove(client) {
            self.push(client);
        }
    }

    fn change_blocked(&mut self, client: ClientId, share: Share) {
        let account = &mut self.accounts[client.index()];
        let remain = &mut self.remains[client.index()];
        // A remain is a distance in virtual time: the same service at the new rate (§2, ticket modifications).
        *remain = rescaled(*remain, account.share(), share);
        // The time does not matter: the wake-up sets it from the global pass.
        *account = Account::new(share, self.quantum_ns, ORIGIN);
    }
}

impl Policy for Stride {
    fn name(&self) -> &'static str {
        "stride"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.accounts[client.index()] = Account::new(share, self.quantum_ns, ORIGIN);
            self.remains[client.index()] = 0;
        }
    }

    fn remove(&mut self, client: ClientId, now: Nanoseconds) {
        if matches!(self.roster.remove(client), ClientState::Ready | ClientState::Running) {
            // Before the share leaves: what runs has been used while it competed.
            self.catch_up(now);
            self.progress.leave(client, now);
            self.queue.remove(client);
            self.global.leave(self.accounts[client.index()].share());
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, now: Nanoseconds) {
        match self.roster.set_share(client, share) {
            ClientState::Absent => {}
            ClientState::Blocked => self.change_blocked(client, share),
            ClientState::Ready | ClientState::Running => {
                self.catch_up(now);
                self.change_active(client, share);
            }
        }
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            self.catch_up(now);
            let account = &mut self.accounts[client.index()];
            // The join of the source: pass = global pass + remain (§2, dynamic client participation).
            account.move_to(shifted(self.global.now(), self.remains[client.index()]));
            self.global.join(account.share());
            self.push(client);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        if !self.roster.has_processor(processor) {
            return None;
        }
        // No clock is needed here: the queue's order does not depend on the global pass.
        let client = self.queue.pop()?;
        self.roster.run(client);
        self.progress.enter(processor, client, now);
        Some(Decision { client, slice_ns: self.quantum_ns, grant: Grant::Share })
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        let Some(state) = self.roster.stop(client, stop) else { return };
        let counted_ns = self.progress.leave(client, now);
        self.catch_up(now);
        let account = &mut self.accounts[client.index()];
        account.charge(ran_ns);
        // The time really used replaces the estimate (§2, nonuniform quanta).
        self.global.advance(service(ran_ns) - service(counted_ns));
        if state == ClientState::Ready {
            self.push(client);
        } else {
            // Before the share leaves, so that the distance is from the pass that it competed by.
            self.remains[client.index()] = lead(account.time(), self.global.now());
            self.global.leave(account.share());
        }
    }
}
