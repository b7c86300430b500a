//! Earliest eligible virtual deadline first: of the clients that are not ahead, the one whose request
//! is due first.
//!
//! Source: Stoica and Abdel-Wahab, "Earliest Eligible Virtual Deadline First", 1995 (TR-95-22). A client
//! asks for one quantum at a time; the request is eligible from the client's virtual time on, and its
//! deadline is a quantum in virtual time later. The system's virtual time is the mean of the competing
//! clients' virtual times, weighted by their shares, as the source has it for clients that come and go
//! ("Fairness in Dynamic Systems"): all lags (what a client should have had less what it had) add up to
//! zero, also when a client joins or leaves with a lag. So at least one client is always eligible.
//!
//! | | |
//! |---|---|
//! | selection and insertion together | O(log N) amortised over requests, and a step for each processor |
//! | lag, either way | less than one quantum while no client joins or leaves with a lag ("Fairness Analysis") |
//! | several processors | one queue serves all, running clients count for the mean |
//!
//! One decision may move many requests, and a step back of the clock (below) every client once more. On
//! several processors, the least early ready client runs when only running clients are eligible. While no
//! share is more than one processor, random trials found no lag beyond a quantum a processor either way (not
//! proved); otherwise there is no bound.
//!
//! A client that blocks takes its lag along and has it again when it wakes (one of the source's strategies).
//! A client that was ahead stays ahead. A client that was behind is owed what it was, at most a quantum.
//! Sleeping adds nothing. A join with a lag puts the clock back and an exit with one forward, or the other
//! way round; such steps move every client's virtual lag by that lag over the sum of shares, beyond the bound
//! above. A change of share leaves lag and clock as they are.
//!
//! Deviations: a request that was cut short is charged by what was used, and a new one is made (the source
//! does so when a client gives its time up early). Two heaps replace the source's augmented search tree: a
//! decision touches less memory, and its bound is amortised instead of a worst case.

use alloc::vec;
use alloc::vec::Vec;

use crate::eligible::Eligible;
use crate::fair_queueing::FairQueue;
use crate::progress::Progress;
use crate::roster::{ClientState, Roster};
use crate::virtual_clock::VirtualClock;
use crate::virtual_time::{Account, ORIGIN, lead, quantum_ns, rescaled, service, shifted};
use crate::{ClientId, Decision, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// The EEVDF policy.
pub struct Eevdf {
    roster: Roster,
    accounts: Vec<Account>,
    /// How far each blocked client was ahead of the clock when it blocked; a lag is negative.
    leads: Vec<i128>,
    clock: VirtualClock,
    progress: Progress,
    queue: Eligible,
    quantum_ns: Nanoseconds,
}

impl Eevdf {
    /// A policy without clients.
    pub fn new(setup: &Setup) -> Eevdf {
        Eevdf {
            roster: Roster::new(setup),
            accounts: Account::all(setup),
            leads: vec![0; setup.clients as usize],
            clock: VirtualClock::new(),
            progress: Progress::new(setup, quantum_ns(setup)),
            queue: Eligible::new(setup.clients),
            quantum_ns: quantum_ns(setup),
        }
    }

    fn push(&mut self, client: ClientId) {
        self.queue.push(client, &self.accounts[client.index()]);
    }

    /// Lets the clock go on by what running clients have used up to now.
    fn catch_up(&mut self, now: Nanoseconds) {
        self.progress.advance_clock(now, &mut self.clock);
    }

    /// Takes off again what the clock has counted of a client's run.
    fn take_back(&mut self, client: ClientId, now: Nanoseconds) {
        let counted_ns = self.progress.leave(client, now);
        self.clock.advance(-service(counted_ns));
    }

    /// Charges a client, and moves the mean by as much as the client's virtual time went on.
    fn charge(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        let account = &mut self.accounts[client.index()];
        let before = account.time();
        account.charge(ran_ns);
        // Not by the service: the clock is the mean of the accounts as they are rounded, so that no error
        // adds up.
        self.clock.advance(lead(account.time(), before).saturating_mul(account.share().get().into()));
    }

    fn leave(&mut self, client: ClientId) {
        let account = &self.accounts[client.index()];
        self.clock.leave_at(account.time(), account.share());
    }

    fn join(&mut self, client: ClientId) {
        let account = &self.accounts[client.index()];
        self.clock.join_at(account.time(), account.share());
    }

    /// Changes the share of a client that is ready or running; its lag, and so the mean, stay.
    fn change_active(&mut self, client: ClientId, share: Share, state: ClientState) {
        let now = self.clock.now();
        // With the old share out and with the new one in: the lag, not the virtual time, stays the same.
        self.leave(client);
        self.accounts[client.index()].set_share(share, self.quantum_ns, now);
        self.join(client);
        if state == ClientState::Ready {
            self.queue.remove(client);
            self.push(client);
        }
    }

    fn change_blocked(&mut self, client: ClientId, share: Share) {
        let account = &mut self.accounts[client.index()];
        let kept = &mut self.leads[client.index()];
        // A lead is a distance in virtual time: the same service at the new rate.
        *kept = rescaled(*kept, account.share(), share);
        // The time does not matter: the wake-up sets it from the clock.
        *account = Account::new(share, self.quantum_ns, ORIGIN);
    }
}

impl Policy for Eevdf {
    fn name(&self) -> &'static str {
        "eevdf"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.accounts[client.index()] = Account::new(share, self.quantum_ns, ORIGIN);
            self.leads[client.index()] = 0;
        }
    }

    fn remove(&mut self, client: ClientId, now: Nanoseconds) {
        let state = self.roster.remove(client);
        if state == ClientState::Ready {
            self.queue.remove(client);
        }
        if matches!(state, ClientState::Ready | ClientState::Running) {
            // The mean is of what clients were charged: what was counted of this unfinished run goes off.
            self.take_back(client, now);
            self.catch_up(now);
            self.leave(client);
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, now: Nanoseconds) {
        match self.roster.set_share(client, share) {
            ClientState::Absent => {}
            ClientState::Blocked => self.change_blocked(client, share),
            state => {
                self.catch_up(now);
                self.change_active(client, share, state);
            }
        }
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            self.catch_up(now);
            // At the clock's time plus the lead it left with: sleeping changes neither ("Fairness in Dynamic
            // Systems").
            let joining = shifted(self.clock.now(), self.leads[client.index()]);
            self.accounts[client.index()].move_to(joining);
            self.join(client);
            self.push(client);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        self.catch_up(now);
        // All eligible clients may be running: then the client that is least ahead keeps the processor busy.
        let eligible = self.queue.pop_eligible(&self.accounts, self.clock.now());
        let client = eligible.or_else(|| self.queue.pop_least_early())?;
        self.roster.run(client);
        self.progress.enter(processor, client, now);
        Some(Decision::by_share(client, self.quantum_ns))
    }

    /// No client displaces another one.
    fn keeps(&self, _processor: ProcessorId) -> bool {
        true
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        let Some(state) = self.roster.stop(client, stop) else { return };
        // The estimate goes off first; `charge` then adds what was really used.
        self.take_back(client, now);
        self.catch_up(now);
        self.charge(client, ran_ns);
        if state == ClientState::Ready {
            return self.push(client);
        }
        let account = &self.accounts[client.index()];
        // Before the client leaves the mean from which its lead is measured. It is owed at most a quantum.
        let ahead = lead(account.time(), self.clock.now());
        self.leads[client.index()] = ahead.max(-account.step());
        self.leave(client);
    }
}
