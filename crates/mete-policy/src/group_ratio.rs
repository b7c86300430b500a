//! Group ratio round robin, GR³: clients of similar shares in groups, round robin within a group, and
//! between groups by the ratio of their work (Caprita, Chan, Nieh, Stein and Zheng, *Group Ratio
//! Round-Robin: O(1) Proportional Share Scheduling for Uniprocessor and Multiprocessor Systems*, USENIX
//! 2005, §3).
//!
//! | | |
//! |---|---|
//! | selection, insertion | O(g) for g groups, and g is at most 21 whatever the number of clients |
//! | fairness | an error between −(g − 1)(g − 2)/2 − 4 and g + 3 quanta |
//! | several processors | one set of groups serves all (see below) |
//!
//! Insertion and removal also take a step for each processor. The error is that of a client's service time,
//! with clients that are always ready; for sleepers see below.
//!
//! Group k holds the clients with shares from 2ᵏ to 2ᵏ⁺¹ − 1; its weight is the sum of their shares, and
//! its work W the time that they were given. Groups stand in the order of their weights, the heaviest
//! first. *Between groups*: having served group i, go on to group i + 1 if
//! (Wᵢ + 1) / (Wᵢ₊₁ + 1) exceeds the ratio of their weights, and else return to the first. *Within a
//! group*: in each round a client is given share / 2ᵏ quanta, 1 to just under 2; it runs whole
//! quanta, and the fraction that is left, its deficit, is added in the next round.
//!
//! The bounds on a client's error are the sums of two. A client's within its group stays between −3 and
//! 4, because in each round it has less than two quanta, and less than one is carried over. A group's
//! stays between −(g − 1)(g − 2)/2 − 1 and g − 1: negative errors quadratic in g and positive ones linear,
//! as the source has them; the tests hold every quantum of random groups to these figures.
//!
//! Time is counted in nanoseconds instead of quanta, so that a client that stops early is charged what it
//! used. Four rules are ours, because the source's clients neither sleep nor stop early:
//!
//! * Because the order is by weight, serving group i + 1 brings it back within its ratio to group i. So
//!   going on or returning amounts to serving the last group whose forerunner exceeds its ratio, or else
//!   the first. Each decision looks for that group, and no index has to be kept right while
//!   groups come, go and change places.
//! * Each client has a virtual time of its own, its service divided by its share. A group's work is the
//!   sum of its clients', in service. The system's virtual time is the mean of all, weighted by their
//!   shares. So a client that leaves takes along what it was ahead or behind. If that stayed, the others
//!   of its group would have what the client was entitled to while it was awake and did not use, and a hog
//!   beside a sleeper would have more than its part.
//! * A client joins at its group's virtual time, in an empty group at the system's, or at its own if that is
//!   later: sleeping saves nothing up, and blocking sheds nothing. A group's clients stand for each other
//!   where groups are compared. So a client that joined elsewhere would make the rest of its group seem to be
//!   ahead or behind.
//! * A group cannot be served while its clients run on other processors. It falls behind without
//!   having a claim. So at each change of weights no group's lead over the one that is furthest behind
//!   counts for more than the bound of the uniprocessor algorithm allows. The source's front log
//!   and weight readjustment for several processors (§4) are not implemented.
//!
//! With sleepers nothing is proved. The tests hold this: of two clients with shares 3 and 1 that always
//! compute, beside one that sleeps (sixteen kinds of it, with shares from 1 to 7), the first has three times
//! what the second has, to within 15 quanta, after 10 s and after 300 s.

use alloc::vec;
use alloc::vec::Vec;

use crate::progress::Progress;
use crate::queue::Queues;
use crate::roster::{ClientState, Roster};
use crate::virtual_time::{Account, ORIGIN, VirtualTime, lead, quantum_ns, service, shifted};
use crate::{ClientId, Decision, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// The number of groups: one for each power of two up to the largest share.
const GROUPS: usize = Share::MAX.get().ilog2() as usize + 1;

/// The most quanta of the furthest-behind group by which another group leads. The error of the group behind
/// is above −(g − 1)(g − 2)/2 − 1, that of the other below g − 1, and g is 21.
const MOST_LEAD_QUANTA: i128 = 256;

/// Five hours. Works are made relative before they exceed this, so that products with weights have room; no
/// run counts for more.
const MOST_RUN_NS: Nanoseconds = Nanoseconds::new(1 << 44);

#[derive(Clone, Copy, Default)]
struct Group {
    /// The sum of the shares of its clients that are ready or running.
    weight: u64,
    /// The sum of their virtual times beyond [`GroupRatio::level`], in units of service, and a quantum for
    /// each client that runs.
    work: i128,
    ready: u32,
}

#[derive(Clone, Copy, Default)]
struct RoundTurn {
    /// The deficit times 2ᵏ: nanoseconds are scaled instead of shares, so that nothing is rounded.
    deficit: i128,
    /// The client has had this round's part already.
    in_turn: bool,
}

/// The group-ratio policy.
pub struct GroupRatio {
    roster: Roster,
    queues: Queues,
    turns: Vec<RoundTurn>,
    accounts: Vec<Account>,
    progress: Progress,
    groups: [Group; GROUPS],
    /// The virtual time that works are relative to.
    level: VirtualTime,
    /// All groups by weight, the heaviest first; of equal weights that of the larger shares first; empty ones
    /// last.
    order: [usize; GROUPS],
    /// How many groups are not empty.
    occupied: usize,
    quantum_ns: Nanoseconds,
}

impl GroupRatio {
    /// A policy without clients.
    pub fn new(setup: &Setup) -> GroupRatio {
        GroupRatio {
            roster: Roster::new(setup),
            queues: Queues::new(GROUPS, setup.clients),
            turns: vec![RoundTurn::default(); setup.clients as usize],
            accounts: Account::all(setup),
            progress: Progress::new(setup, quantum_ns(setup)),
            groups: [Group::default(); GROUPS],
            level: ORIGIN,
            order: core::array::from_fn(|group| GROUPS - 1 - group),
            occupied: 0,
            quantum_ns: quantum_ns(setup),
        }
    }

    fn group_of(&self, client: ClientId) -> usize {
        self.roster.share(client).get().ilog2() as usize
    }

    /// The last group with a ready client that is due because the group before it has had more than its part;
    /// or else the first group with a ready client.
    fn next_group(&self) -> Option<usize> {
        let order = &self.order[..self.occupied];
        // Backwards: the source walks on as long as groups are due, so the last of them is served (§3.1).
        let due =
            order.windows(2).rev().find(|pair| self.is_ready(pair[1]) && self.exceeds(pair[0], pair[1]));
        due.map(|pair| pair[1]).or_else(|| order.iter().copied().find(|&group| self.is_ready(group)))
    }

    fn is_ready(&self, group: usize) -> bool {
        self.groups[group].ready > 0
    }

    /// Whether a group has had more than its part in comparison with the next one, one quantum ahead for
    /// both.
    fn exceeds(&self, group: usize, next: usize) -> bool {
        let (group, next) = (&self.groups[group], &self.groups[next]);
        // (W₁ + 1) / (W₂ + 1) > weight₁ / weight₂ without division, so that nothing is rounded.
        let quantum = service(self.quantum_ns);
        group.work.saturating_add(quantum).saturating_mul(next.weight.into())
            > next.work.saturating_add(quantum).saturating_mul(group.weight.into())
    }

    /// The part of a group's charges, or of all charges, that stands for quanta that are not used yet.
    fn unused(&self, group: Option<usize>, now: Nanoseconds) -> i128 {
        let unused = self.progress.unused(now).filter(|&(client, _)| {
            // `set_share` takes a client that runs out of its group for a moment.
            let runs = self.roster.state(client) == ClientState::Running;
            runs && group.is_none_or(|group| self.group_of(client) == group)
        });
        unused.map(|(_, unused_ns)| service(unused_ns)).sum()
    }

    /// The virtual time of a group with clients in it.
    fn group_time(&self, group: usize, now: Nanoseconds) -> VirtualTime {
        let Group { weight, work, .. } = self.groups[group];
        shifted(self.level, (work - self.unused(Some(group), now)).div_euclid(i128::from(weight.max(1))))
    }

    /// The mean virtual time of all clients that are ready or running; the last such while there is none.
    fn system_time(&self, now: Nanoseconds) -> VirtualTime {
        let weight: i128 = self.groups.iter().map(|group| i128::from(group.weight)).sum();
        if weight == 0 {
            return self.level;
        }
        let work = self.groups.iter().fold(0i128, |sum, group| sum.saturating_add(group.work));
        shifted(self.level, (work - self.unused(None, now)).div_euclid(weight))
    }

    /// Puts a client that wakes no earlier than the clients that it joins.
    fn catch_up(&mut self, client: ClientId, now: Nanoseconds) {
        let group = self.group_of(client);
        let empty = self.groups[group].weight == 0;
        let time = if empty { self.system_time(now) } else { self.group_time(group, now) };
        self.accounts[client.index()].not_before(time);
    }

    /// Adds a client to its group.
    fn join(&mut self, client: ClientId, now: Nanoseconds) {
        // Relative to the present first: the sums are then as small as they can be.
        self.relate_works(now);
        let share = self.roster.share(client).get();
        let beyond = lead(self.accounts[client.index()].time(), self.level);
        let group = &mut self.groups[share.ilog2() as usize];
        group.weight = group.weight.saturating_add(share.into());
        group.work = group.work.saturating_add(beyond.saturating_mul(share.into()));
        self.sort();
    }

    /// Takes a client, which does not run now, out of its group. Where works have been limited, on several
    /// processors, its own virtual time may be far from its group's: then it takes its part of the group's
    /// work along.
    fn leave(&mut self, client: ClientId, now: Nanoseconds) {
        self.relate_works(now);
        let share = self.roster.share(client).get();
        let group = self.group_of(client);
        let time = self.group_time(group, now);
        let account = &mut self.accounts[client.index()];
        let ahead = lead(account.time(), time).saturating_mul(share.into());
        if ahead.abs() > service(self.quantum_ns) * MOST_LEAD_QUANTA {
            account.move_to(time);
        }
        let beyond = lead(account.time(), self.level);
        let group = &mut self.groups[group];
        group.weight = group.weight.saturating_sub(share.into());
        let rest = group.work.saturating_sub(beyond.saturating_mul(share.into()));
        // An empty group has no work; what rounding left would count for the next client that joins.
        group.work = if group.weight == 0 { 0 } else { rest };
        self.sort();
    }

    /// Restores the order after one group's weight changed.
    fn sort(&mut self) {
        let groups = &self.groups;
        let rank = |group: usize| (groups[group].weight, group);
        // In place: at most 21 entries, one of which is out of its place.
        for place in 1..GROUPS {
            let mut here = place;
            while here > 0 && rank(self.order[here]) > rank(self.order[here - 1]) {
                self.order.swap(here, here - 1);
                here -= 1;
            }
        }
        self.occupied = self.order.iter().take_while(|&&group| groups[group].weight > 0).count();
    }

    /// Makes all works relative to the system's virtual time.
    fn relate_works(&mut self, now: Nanoseconds) {
        let time = self.system_time(now);
        let passed = lead(time, self.level);
        self.level = time;
        for group in &mut self.groups {
            group.work = group.work.saturating_sub(passed.saturating_mul(group.weight.into()));
        }
        let Some(behind) = self.furthest_behind() else { return };
        // From here on: no group leads by more than the uniprocessor algorithm allows.
        let Group { work: least, weight: base, .. } = self.groups[behind];
        let base = i128::from(base);
        let most = service(self.quantum_ns) * MOST_LEAD_QUANTA;
        for group in self.groups.iter_mut().filter(|group| group.weight > 0) {
            let weight = i128::from(group.weight);
            let level = (least / base).saturating_mul(weight);
            let most = most.max((most / base).saturating_mul(weight));
            // One more unit for each share makes up for the division of `least`, which is rounded.
            group.work = group.work.min(level.saturating_add(weight).saturating_add(most));
        }
    }

    /// The group with the least work for its weight; the lightest of equals.
    fn furthest_behind(&self) -> Option<usize> {
        let order = self.order[..self.occupied].iter().copied();
        order.reduce(|least, group| if self.is_no_further(group, least) { group } else { least })
    }

    /// Whether a group has had no more work for its weight than another one.
    fn is_no_further(&self, group: usize, other: usize) -> bool {
        let (group, other) = (&self.groups[group], &self.groups[other]);
        group.work.saturating_mul(other.weight.into()) <= other.work.saturating_mul(group.weight.into())
    }

    /// Takes out a client that is ready, or was running. The charge ahead for its run goes with it.
    fn leave_group(&mut self, client: ClientId, state: ClientState, now: Nanoseconds) {
        if state == ClientState::Ready {
            self.dequeue(client);
        } else {
            let group = self.group_of(client);
            self.groups[group].work -= service(self.quantum_ns);
        }
        self.leave(client, now);
    }

    fn join_group(&mut self, client: ClientId, state: ClientState, now: Nanoseconds) {
        self.turns[client.index()] = RoundTurn::default();
        self.join(client, now);
        if state == ClientState::Ready {
            self.enqueue(client, false);
        } else {
            self.charge_ahead(self.group_of(client), now);
            self.open_turn(client);
        }
    }

    fn enqueue(&mut self, client: ClientId, first: bool) {
        let group = self.group_of(client);
        self.groups[group].ready += 1;
        if first {
            self.queues.push_front(group, client);
        } else {
            self.queues.push_back(group, client);
        }
    }

    fn dequeue(&mut self, client: ClientId) {
        let group = self.group_of(client);
        self.groups[group].ready -= 1;
        self.queues.remove(group, client);
    }

    /// Charges a group for a whole quantum before it is known how much is used, so that a decision for
    /// another processor, or a decision that is taken ahead, counts it.
    fn charge_ahead(&mut self, group: usize, now: Nanoseconds) {
        let work = &mut self.groups[group].work;
        *work = work.saturating_add(service(self.quantum_ns));
        if *work > service(MOST_RUN_NS) {
            self.relate_works(now);
        }
    }

    fn settle(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        let (group, ran_ns) = (self.group_of(client), ran_ns.min(MOST_RUN_NS));
        let least = self.least_deficit(client);
        self.accounts[client.index()].charge(ran_ns);
        // Exact, so that equal works compare as equal. Accounts, which are rounded, say what a client takes
        // along.
        let work = &mut self.groups[group].work;
        *work = work.saturating_add(service(ran_ns)).saturating_sub(service(self.quantum_ns));
        let turn = &mut self.turns[client.index()];
        turn.deficit = (turn.deficit - (i128::from(ran_ns) << group)).max(least);
    }

    /// The time that a client is given in a round, scaled as its deficit is: share × quantum.
    fn part(&self, client: ClientId) -> i128 {
        i128::from(self.roster.share(client).get()) * i128::from(self.quantum_ns)
    }

    /// One quantum, scaled as the client's deficit is.
    fn whole_quantum(&self, client: ClientId) -> i128 {
        i128::from(self.quantum_ns) << self.group_of(client)
    }

    /// A debt leaves at least one nanosecond of the next round's part, so that no turn is skipped.
    // 2ᵏ is a nanosecond in the deficit's scale.
    fn least_deficit(&self, client: ClientId) -> i128 {
        (1 << self.group_of(client)) - self.part(client)
    }

    /// Begins a turn, or goes on with one, and answers the slice: a quantum, or what is left if that is less.
    fn open_turn(&mut self, client: ClientId) -> Nanoseconds {
        let (part, group) = (self.part(client), self.group_of(client));
        let turn = &mut self.turns[client.index()];
        if !turn.in_turn {
            // In scaled time a round's part is share × quantum; divided by 2ᵏ it is 1 to just under 2 quanta.
            turn.deficit += part;
            turn.in_turn = true;
        }
        let left_ns = u64::try_from(turn.deficit >> group).map_or(self.quantum_ns, Nanoseconds::new);
        left_ns.clamp(Nanoseconds::new(1), self.quantum_ns)
    }

    fn close_turn(&mut self, client: ClientId, keep: i128) {
        let turn = &mut self.turns[client.index()];
        turn.deficit = turn.deficit.min(keep);
        turn.in_turn = false;
    }

    /// Whether a client that stopped goes on with its turn: it was interrupted, or has another whole
    /// quantum left.
    fn goes_on(&self, client: ClientId, stop: Stop) -> bool {
        let needed = match stop {
            // At least a nanosecond: with less there is nothing to go on with.
            Stop::Preempted => 1 << self.group_of(client),
            // The fraction of a quantum that is left is the deficit of the next round (§3.2).
            Stop::Expired => self.whole_quantum(client),
            Stop::Yielded | Stop::Blocked => return false,
        };
        self.turns[client.index()].deficit >= needed
    }
}

impl Policy for GroupRatio {
    fn name(&self) -> &'static str {
        "group-ratio"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.turns[client.index()] = RoundTurn::default();
            self.accounts[client.index()] = Account::new(share, self.quantum_ns, ORIGIN);
        }
    }

    fn remove(&mut self, client: ClientId, now: Nanoseconds) {
        let state = self.roster.remove(client);
        if matches!(state, ClientState::Ready | ClientState::Running) {
            self.progress.leave(client, now);
            self.leave_group(client, state, now);
        }
    }

    /// A client with a new share begins a new turn: at once if it runs, or else at the end of the queue. Its
    /// lead or lag stays the same service.
    fn set_share(&mut self, client: ClientId, share: Share, now: Nanoseconds) {
        let state = self.roster.state(client);
        if state == ClientState::Absent || self.roster.share(client) == share {
            return;
        }
        let time = self.system_time(now);
        if state == ClientState::Blocked {
            self.roster.set_share(client, share);
            self.turns[client.index()] = RoundTurn::default();
            self.accounts[client.index()].set_share(share, self.quantum_ns, time);
            return;
        }
        // While it is in no group it does not count as running, or `unused` would take its charge off twice.
        self.roster.stop(client, Stop::Preempted);
        self.leave_group(client, state, now);
        self.roster.set_share(client, share);
        self.accounts[client.index()].set_share(share, self.quantum_ns, time);
        self.join_group(client, state, now);
        if state == ClientState::Running {
            self.roster.run(client);
        }
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            self.catch_up(client, now);
            self.join(client, now);
            self.enqueue(client, false);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        let group = self.next_group()?;
        let client = self.queues.front(group)?;
        self.dequeue(client);
        self.roster.run(client);
        self.progress.enter(processor, client, now);
        self.charge_ahead(group, now);
        Some(Decision::by_share(client, self.open_turn(client)))
    }

    /// No client displaces another one.
    fn keeps(&self, _processor: ProcessorId) -> bool {
        true
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        let Some(next) = self.roster.stop(client, stop) else { return };
        self.progress.leave(client, now);
        self.settle(client, ran_ns);
        if next == ClientState::Blocked {
            // A blocked client keeps a debt, and loses what was left of its turn.
            self.close_turn(client, 0);
            self.leave(client, now);
            return;
        }
        let goes_on = self.goes_on(client, stop);
        if !goes_on {
            // At most one round's part is carried over, so that no client saves time up by yielding.
            self.close_turn(client, self.part(client));
        }
        self.enqueue(client, goes_on);
    }
}
