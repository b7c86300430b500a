//! Group ratio round robin, GR³: clients of like shares in groups, round robin within a group, and
//! between groups by the ratio of their work (Caprita, Chan, Nieh, Stein and Zheng, *Group Ratio
//! Round-Robin: O(1) Proportional Share Scheduling for Uniprocessor and Multiprocessor Systems*, USENIX
//! 2005, §3).
//!
//! | | |
//! |---|---|
//! | selection, insertion | O(g) for g groups, and g is at most 21 whatever the number of clients |
//! | fairness | with g groups, a client's service-time error stays between −(g − 1)(g − 2)/2 − 4 and g + 3 quanta |
//! | several processors | one set of groups serves all (see below) |
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
//! Time is counted in nanoseconds instead of quanta, so that one who stops early is charged what it
//! used. Three rules are ours:
//!
//! * Because the order is by weight, serving group i + 1 brings it back within its ratio to group i. So
//!   going on or returning comes to serving the last group whose forerunner exceeds its ratio, or else
//!   the first. That is what is looked for at each decision, and no index has to be kept right while
//!   groups come, go and change places.
//! * Whenever weights change, the part of all works that is in proportion to the weights is subtracted:
//!   it cancels out of every comparison. What stays is how far each group is ahead, in time, whatever
//!   the weights become. An empty group's lead shrinks meanwhile, as if it had kept its weight.
//! * A group cannot be served while its clients run on other processors. It falls behind without
//!   having a claim, so at each change of weights no group's lead over the one that is furthest behind
//!   counts for more than the bound of the uniprocessor algorithm allows. The source's front log
//!   and weight readjustment for several processors (§4) are not implemented.

use alloc::vec;
use alloc::vec::Vec;

use crate::queue::Queues;
use crate::roster::{Roster, State};
use crate::{ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// One for each power of two up to the largest share.
const GROUPS: usize = Share::MAX.get().ilog2() as usize + 1;

/// No group leads by more quanta of the one that is furthest behind: that one's error is above
/// −(g − 1)(g − 2)/2 − 1, its own below g − 1, and g is 21.
const MOST_LEAD_QUANTA: u128 = 256;

/// Works are made relative before they can grow beyond what products with weights leave room for.
const MOST_WORK_NS: u64 = 1 << 62;

#[derive(Clone, Copy, Default)]
struct Group {
    /// The sum of the shares of its clients that are ready or running.
    weight: u64,
    /// The weight that an empty group had last.
    last_weight: u64,
    work_ns: u64,
    ready: u32,
}

#[derive(Clone, Copy, Default)]
struct Account {
    /// The deficit times 2ᵏ: nanoseconds are scaled instead of shares, so that nothing is rounded.
    deficit: i128,
    /// It has had this round's part already.
    in_turn: bool,
}

/// The group-ratio policy.
pub struct GroupRatio {
    roster: Roster,
    queues: Queues,
    accounts: Vec<Account>,
    groups: [Group; GROUPS],
    /// All groups by weight, the heaviest first, and of equals that of the larger shares; empty ones last.
    order: [usize; GROUPS],
    /// How many of them are not empty.
    occupied: usize,
    quantum_ns: Nanoseconds,
}

impl GroupRatio {
    /// A policy without clients.
    #[must_use]
    pub fn new(setup: &Setup) -> GroupRatio {
        GroupRatio {
            roster: Roster::new(setup),
            queues: Queues::new(GROUPS, setup.clients),
            accounts: vec![Account::default(); setup.clients as usize],
            groups: [Group::default(); GROUPS],
            order: core::array::from_fn(|group| GROUPS - 1 - group),
            occupied: 0,
            quantum_ns: setup.quantum_ns.clamp(1, MOST_WORK_NS),
        }
    }

    fn group_of(&self, client: ClientId) -> usize {
        self.roster.share(client).get().ilog2() as usize
    }

    /// The last group with somebody ready that is due since the one before it has had more than its part;
    /// or else the first with somebody ready.
    fn next_group(&self) -> Option<usize> {
        let order = &self.order[..self.occupied];
        let ready = |&&group: &&usize| self.groups[group].ready > 0;
        let due = order.windows(2).rev().find(|pair| ready(&&pair[1]) && self.exceeds(pair[0], pair[1]));
        due.map(|pair| &pair[1]).or_else(|| order.iter().find(ready)).copied()
    }

    /// Whether a group has had more than its part beside the next one, one quantum ahead for both.
    fn exceeds(&self, group: usize, next: usize) -> bool {
        let (group, next) = (&self.groups[group], &self.groups[next]);
        let ahead = |work_ns: u64| u128::from(work_ns) + u128::from(self.quantum_ns);
        ahead(group.work_ns) * u128::from(next.weight) > ahead(next.work_ns) * u128::from(group.weight)
    }

    /// Adds a client to its group's weight, or takes it out.
    fn weigh(&mut self, client: ClientId, joins: bool) {
        self.relate_works();
        let (group, share) = (self.group_of(client), u64::from(self.roster.share(client).get()));
        let group = &mut self.groups[group];
        if joins {
            group.weight = group.weight.saturating_add(share);
        } else {
            group.last_weight = group.weight;
            group.weight = group.weight.saturating_sub(share);
        }
        self.sort();
    }

    /// Restores the order after one group's weight changed.
    fn sort(&mut self) {
        let groups = &self.groups;
        let rank = |group: usize| (groups[group].weight, group);
        // In place: at most 21 entries, of which one is out of its place.
        for place in 1..GROUPS {
            let mut here = place;
            while here > 0 && rank(self.order[here]) > rank(self.order[here - 1]) {
                self.order.swap(here, here - 1);
                here -= 1;
            }
        }
        self.occupied = self.order.iter().take_while(|&&group| groups[group].weight > 0).count();
    }

    /// Makes all works relative to that of the group that is furthest behind.
    fn relate_works(&mut self) {
        let Some(behind) = self.furthest_behind() else { return };
        let Group { work_ns, weight: base, .. } = self.groups[behind];
        let level_ns = work_ns / base;
        let most_ns = u128::from(self.quantum_ns) * MOST_LEAD_QUANTA;
        for group in &mut self.groups {
            let weight = if group.weight > 0 { group.weight } else { group.last_weight };
            group.work_ns = group.work_ns.saturating_sub(level_ns.saturating_mul(weight));
            let lead_ns = most_ns.max(most_ns * u128::from(weight) / u128::from(base));
            let most_work_ns = lead_ns.saturating_add((work_ns % base).into());
            group.work_ns = u64::try_from(most_work_ns).unwrap_or(MOST_WORK_NS).min(group.work_ns);
        }
    }

    /// The group with the least work for its weight; the lightest of equals.
    fn furthest_behind(&self) -> Option<usize> {
        let served = |group: usize| u128::from(self.groups[group].work_ns);
        let weight = |group: usize| u128::from(self.groups[group].weight);
        let order = self.order[..self.occupied].iter().copied();
        order.reduce(|least, group| {
            if served(group) * weight(least) <= served(least) * weight(group) { group } else { least }
        })
    }

    /// Takes out a client that is ready or running, and what its group was charged ahead for it.
    fn leave_group(&mut self, client: ClientId, state: State) {
        if state == State::Ready {
            self.dequeue(client);
        } else {
            let work_ns = &mut self.groups[self.roster.share(client).get().ilog2() as usize].work_ns;
            *work_ns = work_ns.saturating_sub(self.quantum_ns);
        }
        self.weigh(client, false);
    }

    fn join_group(&mut self, client: ClientId, state: State) {
        self.accounts[client as usize] = Account::default();
        self.weigh(client, true);
        if state == State::Ready {
            self.enqueue(client, false);
        } else {
            self.charge_ahead(self.group_of(client));
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

    /// Charges a group for a whole quantum before it is known what is used, so that a decision for
    /// another processor, or one ahead, sees it.
    fn charge_ahead(&mut self, group: usize) {
        let work_ns = &mut self.groups[group].work_ns;
        *work_ns = work_ns.saturating_add(self.quantum_ns);
        if *work_ns > MOST_WORK_NS {
            self.relate_works();
        }
    }

    fn settle(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        let group = self.group_of(client);
        let least = self.least_deficit(client);
        let work_ns = &mut self.groups[group].work_ns;
        *work_ns = work_ns.saturating_add(ran_ns.min(MOST_WORK_NS)).saturating_sub(self.quantum_ns);
        let account = &mut self.accounts[client as usize];
        account.deficit = (account.deficit - (i128::from(ran_ns) << group)).max(least);
    }

    /// What a client is given in a round, scaled as its deficit is: share × quantum.
    fn part(&self, client: ClientId) -> i128 {
        i128::from(self.roster.share(client).get()) * i128::from(self.quantum_ns)
    }

    /// One quantum, scaled as the client's deficit is.
    fn whole_quantum(&self, client: ClientId) -> i128 {
        i128::from(self.quantum_ns) << self.group_of(client)
    }

    /// A debt leaves at least one nanosecond of the next round's part, so that no turn is skipped.
    fn least_deficit(&self, client: ClientId) -> i128 {
        (1 << self.group_of(client)) - self.part(client)
    }

    /// Begins a turn, or goes on with one; the slice, a quantum unless there is less left.
    fn open_turn(&mut self, client: ClientId) -> Nanoseconds {
        let (part, group) = (self.part(client), self.group_of(client));
        let account = &mut self.accounts[client as usize];
        if !account.in_turn {
            account.deficit += part;
            account.in_turn = true;
        }
        let left_ns = Nanoseconds::try_from(account.deficit >> group).unwrap_or(self.quantum_ns);
        left_ns.clamp(1, self.quantum_ns)
    }

    fn close_turn(&mut self, client: ClientId, keep: i128) {
        let account = &mut self.accounts[client as usize];
        account.deficit = account.deficit.min(keep);
        account.in_turn = false;
    }

    /// Whether a client that stopped goes on with its turn: it was interrupted, or has another whole
    /// quantum.
    fn goes_on(&self, client: ClientId, stop: Stop) -> bool {
        let needed = match stop {
            Stop::Preempted => 1 << self.group_of(client),
            Stop::Expired => self.whole_quantum(client),
            Stop::Yielded | Stop::Blocked => return false,
        };
        self.accounts[client as usize].deficit >= needed
    }
}

impl Policy for GroupRatio {
    fn name(&self) -> &'static str {
        "group-ratio"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.accounts[client as usize] = Account::default();
        }
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        let state = self.roster.remove(client);
        if state == State::Ready {
            self.dequeue(client);
        }
        if matches!(state, State::Ready | State::Running) {
            self.weigh(client, false);
        }
    }

    /// A client with a new share begins a new turn: at once if it runs, or else at the end of the queue.
    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        let state = self.roster.state(client);
        if matches!(state, State::Absent | State::Blocked) || self.roster.share(client) == share {
            if self.roster.set_share(client, share) != State::Absent {
                self.accounts[client as usize] = Account::default();
            }
            return;
        }
        self.leave_group(client, state);
        self.roster.set_share(client, share);
        self.join_group(client, state);
    }

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            self.weigh(client, true);
            self.enqueue(client, false);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        if !self.roster.has_processor(processor) {
            return None;
        }
        let group = self.next_group()?;
        let client = self.queues.front(group)?;
        self.dequeue(client);
        self.roster.run(client);
        self.charge_ahead(group);
        Some(Decision { client, slice_ns: self.open_turn(client), grant: Grant::Share })
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        let Some(next) = self.roster.stop(client, stop) else { return };
        self.settle(client, ran_ns);
        if next == State::Blocked {
            self.close_turn(client, 0);
            self.weigh(client, false);
            return;
        }
        let goes_on = self.goes_on(client, stop);
        if !goes_on {
            self.close_turn(client, self.part(client));
        }
        self.enqueue(client, goes_on);
    }
}
