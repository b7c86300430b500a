//! Borrowed virtual time: the client with the smallest effective virtual time runs first; clients that need
//! low latency borrow from their future.
//!
//! Source: Duda and Cheriton, "Borrowed-Virtual-Time (BVT) Scheduling", 1999: the base algorithm, warp and
//! warp limits. A client's actual virtual time is its service divided by its share. Its effective virtual
//! time is the same, less its warp while it is warped. So a warped client is dispatched early, but what it
//! uses is charged all the same, and its share in the long run stays what it is.
//!
//! | | |
//! |---|---|
//! | selection and insertion together | O(log N); a wake-up and a stop also look at every processor |
//! | ahead of the furthest behind, in virtual time | at most (quantum + allowance) / share; with warp, more by it |
//! | several processors | one queue serves all; a wake-up preempts the client that is furthest ahead |
//!
//! On several processors, the bound does not hold: a client that runs elsewhere is furthest behind until it
//! is charged.
//!
//! A woken client starts at the scheduler's virtual time, the least actual virtual time of all that are
//! runnable, or at its own, whichever is later: sleeping saves nothing up. If the woken client's effective
//! virtual time is then smaller than a running client's, by more than the allowance below, it preempts that
//! client.
//!
//! A running client goes on, at the end of a quantum or when it has to give way, until another client's
//! effective virtual time is smaller than its own by more than the context switch allowance over its share.
//! The quantum is the least charge, so with an allowance of zero every client still gets a quantum at a time.
//! A decision that is given back before the client ran at all counts as not made.
//!
//! # Warp
//!
//! One domain's clients are warped: [`Settings::warp`]. A warp begins when a client wakes. It may be limited:
//! after a given processor time without blocking the client goes unwarped for a while. The end of that rest
//! takes effect when the client next stops or wakes.
//!
//! # Deviations
//!
//! The source lets threads set their warps by system calls; here warps are part of the policy's settings. Its
//! charges are rounded to ticks, here they are exact. Its dispatcher lets a client run until the allowance is
//! used up; here the question is asked anew after every quantum, so that all policies decide equally often.

use alloc::vec;
use alloc::vec::Vec;

use crate::heap::Heap;
use crate::occupancy::{Occupancy, Occupant};
use crate::progress::Progress;
use crate::roster::{ClientState, Roster};
use crate::virtual_time::{Account, ORIGIN, VirtualTime, quantum_ns, service, shifted};
use crate::{ClientId, Decision, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// What can be set; by default no client is warped and the allowance is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The context switch allowance: how long a client may go on once it is ahead, in nanoseconds.
    pub allowance_ns: Nanoseconds,
    /// Which clients are warped.
    pub warp: Option<Warp>,
}

/// A warp for the clients of one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warp {
    /// The domain whose clients are warped.
    pub domain: DomainIndex,
    /// How far their effective virtual time is put back, in nanoseconds of service at a share of one.
    pub warp_ns: Nanoseconds,
    /// For how long a client may run warped from its wake-up on, in nanoseconds.
    pub limit_ns: Nanoseconds,
    /// For how long it then goes unwarped at least, in nanoseconds.
    pub rest_ns: Nanoseconds,
}

/// A client's warp.
#[derive(Clone, Copy, Default)]
struct Borrowing {
    /// How much longer it may run warped; 0 while it is not warped.
    left_ns: Nanoseconds,
    /// When it may be warped again.
    not_before: Nanoseconds,
}

/// The BVT policy.
pub struct Bvt {
    settings: Settings,
    roster: Roster,
    accounts: Vec<Account>,
    borrowings: Vec<Borrowing>,
    occupancy: Occupancy,
    progress: Progress,
    /// The client that left each processor last, if it has a claim to go on there.
    claims: Vec<Option<ClientId>>,
    /// Ready clients, by effective virtual time.
    ready: Heap,
    /// Ready and running clients, by actual virtual time.
    runnable: Heap,
    /// The scheduler's virtual time when it was last read.
    scheduler_time: VirtualTime,
    quantum_ns: Nanoseconds,
}

impl Bvt {
    /// A policy without clients.
    pub fn new(setup: &Setup, settings: Settings) -> Bvt {
        Bvt {
            settings,
            roster: Roster::new(setup),
            accounts: Account::all(setup),
            borrowings: vec![Borrowing::default(); setup.clients as usize],
            occupancy: Occupancy::new(setup.processors),
            progress: Progress::new(setup, quantum_ns(setup)),
            claims: vec![None; usize::from(setup.processors.max(1))],
            ready: Heap::new(setup.clients),
            runnable: Heap::new(setup.clients),
            scheduler_time: ORIGIN,
            quantum_ns: quantum_ns(setup),
        }
    }

    /// The least actual virtual time of the runnable clients; the last such while there is none.
    fn scheduler_time(&mut self, now: Nanoseconds) -> VirtualTime {
        self.catch_up(now);
        if let Some((least, _)) = self.runnable.least() {
            // It never goes back: the least does where a run was estimated too long, and no arrival may gain
            // by that.
            self.scheduler_time = self.scheduler_time.max(least);
        }
        self.scheduler_time
    }

    /// Puts running clients at what they have used up to now. Their accounts are charged when they stop.
    fn catch_up(&mut self, now: Nanoseconds) {
        let (accounts, runnable) = (&self.accounts, &mut self.runnable);
        self.progress.each(now, |client, used_ns| {
            // A copy: the account itself is charged by the exact time, once.
            let mut account = accounts[client.index()];
            account.charge(used_ns);
            if runnable.remove(client) {
                runnable.push(account.time(), client);
            }
        });
    }

    fn effective(&self, client: ClientId) -> VirtualTime {
        let actual = self.accounts[client.index()].time();
        match self.settings.warp {
            // A client has time left to run warped only if it is of the warped domain (`borrow`).
            Some(warp) if !self.borrowings[client.index()].left_ns.is_zero() => {
                actual.saturating_sub(service(warp.warp_ns).unsigned_abs())
            }
            _ => actual,
        }
    }

    /// The effective virtual time below which another client takes a processor from `client`: `client`'s own
    /// after `ran_ns` more, less the allowance.
    fn defence(&self, client: ClientId, ran_ns: Nanoseconds) -> VirtualTime {
        let kept_ns = i128::from(ran_ns) - i128::from(self.settings.allowance_ns);
        let share = i128::from(self.accounts[client.index()].share().get());
        shifted(self.effective(client), service(Nanoseconds::new(1)).saturating_mul(kept_ns) / share)
    }

    /// Begins a warp if the client's domain has one and the client has rested.
    fn borrow(&mut self, client: ClientId, now: Nanoseconds) {
        let borrowing = &mut self.borrowings[client.index()];
        match self.settings.warp {
            Some(warp) if warp.domain == self.roster.domain(client) && now >= borrowing.not_before => {
                borrowing.left_ns = warp.limit_ns;
            }
            _ => {}
        }
    }

    /// Counts time that a client ran warped, and ends the warp at its limit.
    fn repay(&mut self, client: ClientId, ran_ns: Nanoseconds, now: Nanoseconds) {
        let Some(warp) = self.settings.warp else { return };
        let borrowing = &mut self.borrowings[client.index()];
        if borrowing.left_ns.is_zero() {
            // Not warped: the rest may have ended meanwhile.
            return self.borrow(client, now);
        }
        borrowing.left_ns = borrowing.left_ns.saturating_sub(ran_ns);
        if borrowing.left_ns.is_zero() {
            borrowing.not_before = now.saturating_add(warp.rest_ns);
        }
    }

    /// Puts a runnable client where its account says.
    fn put(&mut self, client: ClientId) {
        self.runnable.remove(client);
        self.runnable.push(self.accounts[client.index()].time(), client);
    }

    fn push(&mut self, client: ClientId) {
        self.ready.push(self.effective(client), client);
    }

    /// The client that left this processor last, if it may go on there and no other undercuts it.
    fn goes_on(&self, processor: ProcessorId) -> Option<ClientId> {
        if self.occupancy.on(processor).is_some() {
            return None;
        }
        let client = (*self.claims.get(processor.index())?)?;
        let (least, _) = self.ready.least()?;
        // It may run elsewhere by now, or sleep: then the claim has no effect until it is overwritten.
        let stays = self.roster.state(client) == ClientState::Ready
            && least >= self.defence(client, Nanoseconds::ZERO);
        stays.then_some(client)
    }

    /// Notes which client left a processor. A client that gave it up by itself has no claim to go on, there
    /// or elsewhere.
    fn note_claim(&mut self, client: ClientId, processor: Option<ProcessorId>, stop: Stop) {
        self.forfeit(client);
        let gave_up = matches!(stop, Stop::Blocked | Stop::Yielded);
        if let Some(claim) = processor.and_then(|processor| self.claims.get_mut(processor.index())) {
            *claim = (!gave_up).then_some(client);
        }
    }

    fn forfeit(&mut self, client: ClientId) {
        for claim in &mut self.claims {
            claim.take_if(|claimant| *claimant == client);
        }
    }

    /// The processor whose client the woken one should replace: the furthest ahead; `None` while one is idle.
    fn victim(&self, woken: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        if self.occupancy.any_idle() {
            return None;
        }
        let seats = self.occupancy.all();
        let defences =
            seats.map(|(processor, occupant)| (self.defence_on(processor, occupant, woken, now), processor));
        let (defence, processor) = defences.max()?;
        (self.effective(woken) < defence).then_some(processor)
    }

    /// What the woken client has to undercut to take a processor.
    fn defence_on(
        &self,
        at: ProcessorId,
        held_by: Occupant,
        woken: ClientId,
        now: Nanoseconds,
    ) -> VirtualTime {
        // A processor that is promised to another client is defended by that one, from the start of its
        // quantum.
        match self.occupancy.asking(at, woken, &self.roster) {
            Some(asking) => self.defence(asking, Nanoseconds::ZERO),
            None => self.defence(held_by.client, now.saturating_sub(held_by.since_ns)),
        }
    }
}

impl Policy for Bvt {
    fn name(&self) -> &'static str {
        "bvt"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.accounts[client.index()] = Account::new(share, self.quantum_ns, ORIGIN);
            self.borrowings[client.index()] = Borrowing::default();
        }
    }

    fn remove(&mut self, client: ClientId, now: Nanoseconds) {
        if self.roster.remove(client) != ClientState::Absent {
            // Before the client leaves: it may be the one that is furthest behind.
            self.scheduler_time(now);
            self.progress.leave(client, now);
            self.ready.remove(client);
            self.runnable.remove(client);
            self.occupancy.leave(client);
            self.forfeit(client);
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        if self.roster.set_share(client, share) != ClientState::Absent {
            let account = &mut self.accounts[client.index()];
            // The virtual time stays: only what follows goes at the new rate.
            *account = Account::new(share, self.quantum_ns, account.time());
        }
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        if !self.roster.wake(client) {
            return None;
        }
        let scheduler_time = self.scheduler_time(now);
        self.accounts[client.index()].not_before(scheduler_time);
        self.borrow(client, now);
        self.runnable.push(self.accounts[client.index()].time(), client);
        self.push(client);
        let victim = self.victim(client, now)?;
        self.occupancy.ask(victim, client);
        Some(victim)
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        // Without an allowance no client that left a processor has an advantage there.
        let allowed = if self.settings.allowance_ns.is_zero() { None } else { self.goes_on(processor) };
        let client = match allowed {
            Some(client) if self.ready.remove(client) => client,
            _ => self.ready.pop()?,
        };
        self.roster.run(client);
        self.occupancy.enter(processor, client, now);
        self.progress.enter(processor, client, now);
        let warped_ns = self.borrowings[client.index()].left_ns;
        // A slice ends with the warp, so that the client competes unwarped for what follows.
        let slice_ns = if warped_ns.is_zero() { self.quantum_ns } else { self.quantum_ns.min(warped_ns) };
        Some(Decision::by_share(client, slice_ns))
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        let Some(state) = self.roster.stop(client, stop) else { return };
        let processor = self.occupancy.leave(client);
        self.progress.leave(client, now);
        if stop == Stop::Preempted && ran_ns.is_zero() {
            // Given back: `catch_up` may have moved it in the meantime, by a run that did not happen.
            self.put(client);
            return self.push(client);
        }
        self.accounts[client.index()].charge(ran_ns);
        self.repay(client, ran_ns, now);
        self.note_claim(client, processor, stop);
        // The charge has moved the account on; `put` first, since the scheduler's time reads this heap.
        self.put(client);
        if state == ClientState::Ready {
            return self.push(client);
        }
        // While the client still counts: it may be the one that is furthest behind.
        self.scheduler_time(now);
        self.runnable.remove(client);
    }
}
