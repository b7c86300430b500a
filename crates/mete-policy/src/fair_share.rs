//! Fair share: users get the processor by their shares, however many processes each has (Henry, *The
//! Fair Share Scheduler*, 1984; Kay and Lauder, *A Fair Share Scheduler*, CACM 31(1), 1988), over the
//! multi-level feedback of a Unix of that time (VTRR paper, §2.2).
//!
//! | | |
//! |---|---|
//! | selection, insertion | constant time, but once in 100 quanta linear in clients: priorities are adjusted |
//! | fairness | in the long run alone |
//! | several processors | one set of queues serves all |
//!
//! Over 20 half-lives of usage, 6400 quanta each, a user's time is within a tenth of its part. This was found
//! for shares of 1 to 10 and up to 9 processes; the sources prove nothing. On several processors, a client
//! that wakes preempts the client on the worst level, counted with what that one has run up to then, if the
//! level is worse than its own.
//!
//! A domain is a user, with its share; a client is a process. The rules are Kay and Lauder's:
//!
//! * Running costs. A process's priority value rises by the time that it runs × its user's usage × the
//!   number of its user's processes that are runnable / its user's share². The smaller the value, the
//!   sooner it runs.
//! * Once in 100 quanta (1 s at 10 ms) every priority value decays, by half in two such periods.
//! * Once in 400 quanta (4 s) every user's usage decays, by half in 16 such periods, and what its
//!   processes ran is added.
//!
//! Since priority values that compete level out, a process's rate goes with share² / (usage × processes),
//! its user's with share² / usage; and as usage follows the rate, the rate goes with the share.
//!
//! Priority values are spread over 128 queues, each first in, first out; the lowest queue that is not
//! empty is served, for one quantum. The spread is set at each adjustment, so that the largest value
//! then lies in the middle.
//!
//! **Where it deviates.** The source's half-lives are an administrator's choice, minutes to days; ours
//! are given above. A process's `nice` is its own share within its user's: the number of processes
//! counts as the sum of their shares over this one's. What processes ran since the last update counts
//! as usage at once. So a user that was away does not hold the processor until then, and a clock
//! that stands still starves no user. Users are not nested (the source has groups of users): a nested
//! domain is a user like others, with its own share. The root domain, and a domain that was not made known,
//! have a share of 1.

use alloc::vec;
use alloc::vec::Vec;

use crate::occupancy::{Occupancy, Occupant};
use crate::queue::Queues;
use crate::roster::{ClientState, Roster};
use crate::{ClientId, Decision, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// The queues of the multi-level feedback; [`FairShare::occupied`] has a bit for each.
const LEVELS: usize = 128;
/// The queue beside the levels, in which all clients wait while the levels change.
const ASIDE: usize = LEVELS;
/// How often priority values decay.
const PRIORITY_PERIOD_QUANTA: u64 = 100;
/// 2^(−1/2) in 2⁻³²: half in two periods.
const PRIORITY_DECAY: u64 = 3_037_000_500;
/// How often usage decays.
const USAGE_PERIOD_QUANTA: u64 = 400;
/// 2^(−1/16) in 2⁻³²: half in 16 periods.
const USAGE_DECAY: u64 = 4_112_874_773;

#[derive(Clone, Copy)]
struct User {
    share: Share,
    usage_ns: u64,
    /// What its processes ran since usage was last updated.
    charges_ns: u64,
    /// The sum of the shares of its processes that are ready or running.
    active: u64,
}

#[derive(Clone, Copy, Default)]
struct Process {
    priority: u128,
    /// The level in whose queue it stands while it is ready.
    level: usize,
}

/// The fair-share policy.
pub struct FairShare {
    roster: Roster,
    users: Vec<User>,
    processes: Vec<Process>,
    queues: Queues,
    /// A bit for each level that is not empty.
    occupied: u128,
    /// The width of a level in priority values.
    step: u128,
    occupancy: Occupancy,
    priority_timer: Timer,
    usage_timer: Timer,
    quantum_ns: Nanoseconds,
    adjustments: u64,
}

impl FairShare {
    /// A policy without clients.
    pub fn new(setup: &Setup) -> FairShare {
        let user = User { share: Share::ONE, usage_ns: 0, charges_ns: 0, active: 0 };
        let quantum_ns = setup.quantum_ns.max(Nanoseconds::new(1));
        FairShare {
            roster: Roster::new(setup),
            users: vec![user; usize::from(setup.domains.max(1))],
            processes: vec![Process::default(); setup.clients as usize],
            queues: Queues::new(LEVELS + 1, setup.clients),
            occupied: 0,
            step: 1,
            occupancy: Occupancy::new(setup.processors),
            priority_timer: Timer::new(quantum_ns.saturating_mul(PRIORITY_PERIOD_QUANTA)),
            usage_timer: Timer::new(quantum_ns.saturating_mul(USAGE_PERIOD_QUANTA)),
            quantum_ns,
            adjustments: 0,
        }
    }

    fn user(&mut self, client: ClientId) -> &mut User {
        &mut self.users[self.roster.domain(client).index()]
    }

    fn enqueue(&mut self, client: ClientId, first: bool) {
        let level = self.level(client);
        self.processes[client.index()].level = level;
        self.occupied |= 1 << level;
        if first {
            self.queues.push_front(level, client);
        } else {
            self.queues.push_back(level, client);
        }
    }

    fn dequeue(&mut self, client: ClientId) {
        let level = self.processes[client.index()].level;
        self.queues.remove(level, client);
        if self.queues.front(level).is_none() {
            self.occupied &= !(1 << level);
        }
    }

    /// The level of a client's priority value as it is now.
    fn level(&self, client: ClientId) -> usize {
        self.level_of(self.processes[client.index()].priority)
    }

    /// A client's level when it will have run for `ran_ns`.
    fn level_after(&self, client: ClientId, ran_ns: Nanoseconds) -> usize {
        self.level_of(self.priority_after(client, ran_ns))
    }

    fn level_of(&self, priority: u128) -> usize {
        usize::try_from(priority / self.step).unwrap_or(LEVELS).min(LEVELS - 1)
    }

    fn charge(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        self.processes[client.index()].priority = self.priority_after(client, ran_ns);
        let user = self.user(client);
        user.charges_ns = user.charges_ns.saturating_add(ran_ns.get());
    }

    /// A process's priority value when it will have run for `ran_ns` (Kay and Lauder's charge, see above).
    fn priority_after(&self, client: ClientId, ran_ns: Nanoseconds) -> u128 {
        let own_share = u128::from(self.roster.share(client).get());
        let user = self.users[self.roster.domain(client).index()];
        // Usage of this period counts at once, this run included (see the deviations above).
        let usage_ns = u128::from(user.usage_ns.saturating_add(user.charges_ns).saturating_add(ran_ns.get()));
        let share = u128::from(user.share.get());
        // The first product fits u128; `active` may not fit into it as well. The divisor is at most 2⁶⁰.
        let cost = (u128::from(ran_ns) * usage_ns).saturating_mul(user.active.into());
        self.processes[client.index()].priority.saturating_add(cost / (share * share * own_share))
    }

    /// Brings usage and priorities up to the time. The steps that are linear in clients come once a period.
    fn advance(&mut self, now: Nanoseconds) {
        // Several periods may have passed at once: the decay is then a power, and takes no longer.
        let updates = self.usage_timer.periods_until(now);
        if updates > 0 {
            self.update_usage(power(USAGE_DECAY, updates));
        }
        let adjustments = self.priority_timer.periods_until(now);
        if adjustments > 0 {
            self.adjust_priorities(power(PRIORITY_DECAY, adjustments));
        }
    }

    fn update_usage(&mut self, factor: u64) {
        for user in &mut self.users {
            let kept_ns = decayed(user.usage_ns.into(), factor);
            user.usage_ns = u64::try_from(kept_ns).unwrap_or(u64::MAX).saturating_add(user.charges_ns);
            user.charges_ns = 0;
        }
    }

    fn adjust_priorities(&mut self, factor: u64) {
        self.adjustments = self.adjustments.saturating_add(1);
        let mut largest = 0;
        for process in &mut self.processes {
            process.priority = decayed(process.priority, factor);
            largest = largest.max(process.priority);
        }
        // The largest value lies in the middle, so that processes can get worse before the next adjustment.
        self.step = largest / (LEVELS as u128 / 2) + 1;
        self.requeue();
    }

    /// Moves every ready client to the level of its present priority value, in the order of the old levels.
    fn requeue(&mut self) {
        // All aside first: a client that moved to a level not yet emptied would be moved twice.
        while self.occupied != 0 {
            let level = self.occupied.trailing_zeros() as usize;
            self.occupied &= self.occupied - 1;
            while let Some(client) = self.queues.pop_front(level) {
                self.queues.push_back(ASIDE, client);
            }
        }
        while let Some(client) = self.queues.pop_front(ASIDE) {
            self.enqueue(client, false);
        }
    }

    /// The processor of the client on the worst level, if a client that woke should take it. What the running
    /// client has used of its quantum counts.
    fn preempted_by(&self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        if self.occupancy.any_idle() {
            return None;
        }
        let seats = self.occupancy.all();
        let levels =
            seats.map(|(processor, occupant)| (self.level_on(processor, occupant, client, now), processor));
        let (level, processor) = levels.max()?;
        (level > self.level(client)).then_some(processor)
    }

    /// The level that a woken client has to be better than to take a processor.
    fn level_on(&self, at: ProcessorId, held_by: Occupant, woken: ClientId, now: Nanoseconds) -> usize {
        // A processor that is promised to another client counts with that one's level.
        if let Some(asking) = self.occupancy.asking(at, woken, &self.roster) {
            return self.level(asking);
        }
        let used_ns = now.saturating_sub(held_by.since_ns).min(self.quantum_ns);
        self.level_after(held_by.client, used_ns)
    }
}

impl Policy for FairShare {
    fn name(&self) -> &'static str {
        "fair-share"
    }

    fn add_domain(&mut self, domain: DomainIndex, _parent: DomainIndex, share: Share) {
        self.set_domain_share(domain, share, Nanoseconds::ZERO);
    }

    fn set_domain_share(&mut self, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if let Some(user) = self.users.get_mut(domain.index()) {
            user.share = share;
        }
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.processes[client.index()] = Process::default();
        }
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        let state = self.roster.remove(client);
        if state == ClientState::Ready {
            self.dequeue(client);
        }
        if matches!(state, ClientState::Ready | ClientState::Running) {
            // The roster keeps the share of an absent client until its number is used again.
            let share = u64::from(self.roster.share(client).get());
            self.user(client).active -= share;
            self.occupancy.leave(client);
        }
        // A blocked client decays with the others until now; the next client of this number starts at zero.
        if let Some(process) = self.processes.get_mut(client.index()) {
            *process = Process::default();
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        let before = u64::from(self.roster.share(client).get());
        // The priority value stays; the new share counts from the next charge on.
        if matches!(self.roster.set_share(client, share), ClientState::Ready | ClientState::Running) {
            let user = self.user(client);
            user.active = user.active - before + u64::from(share.get());
        }
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        // First, because an adjustment changes the width of the levels.
        self.advance(now);
        if !self.roster.wake(client) {
            return None;
        }
        let share = u64::from(self.roster.share(client).get());
        self.user(client).active += share;
        self.enqueue(client, false);
        let victim = self.preempted_by(client, now)?;
        self.occupancy.ask(victim, client);
        Some(victim)
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        self.advance(now);
        // If no level is occupied, all 128 bits are zero, and their number is LEVELS.
        let level = self.occupied.trailing_zeros() as usize;
        let client = if level < LEVELS { self.queues.front(level) } else { None }?;
        self.dequeue(client);
        self.roster.run(client);
        self.occupancy.enter(processor, client, now);
        Some(Decision::by_share(client, self.quantum_ns))
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        let Some(next) = self.roster.stop(client, stop) else { return };
        // Before `active` changes: while it ran, the client counted among its user's processes.
        self.charge(client, ran_ns);
        self.occupancy.leave(client);
        self.advance(now);
        if next == ClientState::Ready {
            // A client that had to give way is still the next of its level.
            self.enqueue(client, stop == Stop::Preempted);
        } else {
            let share = u64::from(self.roster.share(client).get());
            self.user(client).active -= share;
        }
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("priority adjustments", self.adjustments);
    }
}

/// Counts whole periods. A time that goes back counts as no period.
struct Timer {
    period_ns: Nanoseconds,
    /// The start of the current period.
    began_ns: Nanoseconds,
}

impl Timer {
    fn new(period_ns: Nanoseconds) -> Timer {
        Timer { period_ns, began_ns: Nanoseconds::ZERO }
    }

    fn periods_until(&mut self, now: Nanoseconds) -> u64 {
        let periods = now.saturating_sub(self.began_ns) / self.period_ns;
        // The sum is at most `now`, so neither the product nor the sum overflows.
        self.began_ns += periods * self.period_ns;
        periods
    }
}

/// `value` × `factor`, which is in 2⁻³² and below 1.
fn decayed(value: u128, factor: u64) -> u128 {
    let factor = u128::from(factor);
    // In two parts, because the product may not fit; the first part is below 2⁹⁶ × 2³².
    (value >> 32) * factor + (((value & u128::from(u32::MAX)) * factor) >> 32)
}

/// `factor`ⁿ, in 2⁻³².
fn power(factor: u64, mut n: u64) -> u64 {
    let (mut result, mut square) = (1 << 32, factor);
    while n > 0 {
        if n & 1 == 1 {
            result = (result * square) >> 32;
        }
        square = (square * square) >> 32;
        n >>= 1;
    }
    result
}
