//! The owner of the policy: tells it what has happened, and gives each processor what it decides.

use mete_policy::{
    ClientId, Decision, DomainIndex, Event, Nanoseconds, Observation, ProcessorId, Share, Stop,
};

use crate::outside::QUANTUM;
use crate::outside::ahead::Ahead;
use crate::outside::answer::{Answer, generation_bits};
use crate::outside::client::{Client, Clients, share, share_in};
use crate::outside::memory::{Activity, CLIENTS, DOMAINS, Memory, TaskView};
use crate::outside::reader::Reader;
use crate::outside::ready::Ready;
use crate::outside::row::{Row, RowKind};
use crate::outside::slot::{Aside, Chosen, PutAside};
use crate::outside::swap::Owned;

/// How many clients are put aside at most while a client is sought that may run on a processor.
const MOST_ASIDE: usize = 64;
/// And how many are given back at most. Policies that deal in cycles go on behind those that come back: each waits for most of a cycle once
/// more, and one of many is long. What stays aside instead has one turn each, whatever its share.
const MOST_GIVEN_BACK: usize = 8;

/// Control groups deeper than this count by those that are nearest to their tasks.
const DEEPEST: usize = 64;

/// How long a decision may wait for its processor.
const MOST_UNUSED: Nanoseconds = QUANTUM;

/// What it has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeciderCounts {
    /// Clients that the policy chose.
    pub decisions: u64,
    /// Clients that gave way at once to one that woke.
    pub preempted: u64,
}

/// See the [module](self).
pub(crate) struct Decider {
    policy: Owned,
    clients: Clients,
    reader: Reader,
    /// Those that the policy takes for ready.
    ready: Ready,
    /// Those of them that want a processor.
    waiting: Ready,
    /// For each processor.
    chosen: Vec<Option<Chosen>>,
    /// The processors that do not carry out what is decided for them, a bit each: a task of a higher class has them.
    absent: u64,
    aside: Aside,
    ahead: Ahead,
    /// What the policy has given last, and a quantum at most: what those have that it is not asked about.
    slice: Nanoseconds,
    /// The processors on which a client is to give way, a bit each, and which one, unless it turns out to have left already.
    preempts: u64,
    gives_way: Vec<ClientId>,
    /// The weights of the domains; 0 for one that is not known.
    weights: Vec<u32>,
    /// The domains in which known ones are.
    parents: Vec<DomainIndex>,
    /// The period of the policy's interrupt, if it wants one, and when that is next.
    tick_period: Option<Nanoseconds>,
    next_tick: Option<Nanoseconds>,
    /// The rows that were lost when all were looked at; `None`: they were not.
    lost: Option<u64>,
    pub counts: DeciderCounts,
}

impl Decider {
    pub fn new(policy: Owned, processors: usize) -> Decider {
        Decider {
            tick_period: tick_period(&policy),
            policy,
            clients: Clients::with_room(CLIENTS),
            reader: Reader::of(processors),
            ready: Ready::of(processors),
            waiting: Ready::of(processors),
            chosen: vec![None; processors],
            absent: 0,
            aside: Aside::with_room(CLIENTS),
            ahead: Ahead::with_room(CLIENTS),
            slice: QUANTUM,
            preempts: 0,
            gives_way: vec![ClientId::new(0); processors],
            weights: vec![0; DOMAINS],
            parents: vec![DomainIndex::ROOT; DOMAINS],
            next_tick: None,
            lost: Some(0),
            counts: DeciderCounts::default(),
        }
    }

    /// Takes over, from the kernel's side itself or from another decider: all domains and clients are looked at.
    pub fn begin(&mut self, memory: &Memory) {
        self.reader.go_on(memory);
        for processor in 0..self.chosen.len() {
            memory.take_back(processor);
        }
        memory.forget_policy();
        self.lost = None;
    }

    /// Reads what has happened up to now, and decides for each processor. It runs on this processor itself.
    pub fn round(&mut self, memory: &Memory, now: Nanoseconds, own: usize) {
        let lost = Some(memory.lost(self.chosen.len()));
        while let Some(row) = self.reader.next(memory, now) {
            // In the order of time: after the row, the client that ran at the tick may have left.
            self.tick(memory, row.time);
            self.see(memory, row);
        }
        self.reader.release(memory);
        if lost != self.lost {
            self.lost = lost;
            self.look_at_domains(memory, now);
            self.look_at_clients(memory, now);
        }
        self.tick(memory, now);
        self.find_absent(memory, now, own);
        self.fill_all(memory, now, own);
        self.have_give_way(memory);
        self.ahead.tell(memory, &mut self.clients, &self.policy);
    }

    /// Has another policy decide from now on. It is told what there is, as if all of it had come at this moment. A
    /// client that runs is taken for blocked until it stops.
    pub fn adopt(&mut self, memory: &Memory, policy: Owned, now: Nanoseconds) -> Owned {
        self.tick_period = tick_period(&policy);
        let before = std::mem::replace(&mut self.policy, policy);
        let processors = self.chosen.len();
        for processor in 0..processors {
            memory.take_back(processor);
        }
        memory.forget_policy();
        self.chosen.fill(None);
        self.aside.clear();
        self.ahead.clear();
        self.preempts = 0;
        (self.ready, self.waiting) = (Ready::of(processors), Ready::of(processors));
        self.next_tick = None;
        self.weights.fill(0);
        self.look_at_domains(memory, now);
        for number in ClientId::first(CLIENTS as u32) {
            if let Some(client) = self.clients.get(number) {
                client.is_ready = false;
                client.is_away = true;
                client.can_run = false;
                client.told = client.used;
                let (domain, weight, allowed) = (client.domain, client.weight, client.allowed);
                let share = self.share_in(weight, domain);
                if let Some(client) = self.clients.get(number) {
                    client.share = share;
                }
                self.policy.add(number, domain, share, now);
                self.policy.set_allowed(number, allowed);
            }
        }
        self.look_at_clients(memory, now);
        before
    }

    /// What it knows of a client, for tests.
    #[cfg(test)]
    pub fn about(&mut self, number: ClientId) -> String {
        format!("{:?}, {:?}, {:?}, {:?}", self.clients.get(number), self.chosen, self.aside, self.ready)
    }

    fn see(&mut self, memory: &Memory, row: Row) {
        let client = ClientId::new(row.number);
        if row.kind.has_used() {
            self.has_given_way(client);
            if let Some(client) = self.clients.get(client) {
                client.has_used(row.used);
            }
        }
        match row.kind {
            RowKind::Joined => self.join(memory, client, row.time, false),
            RowKind::Left => self.leave(client, row.time),
            RowKind::Changed => self.change(memory, client, row.time),
            RowKind::Woke => self.wait(memory, client, row, Stop::Preempted),
            RowKind::Expired => self.wait(memory, client, row, Stop::Expired),
            RowKind::Preempted => self.wait(memory, client, row, Stop::Preempted),
            RowKind::Yielded => self.wait(memory, client, row, Stop::Yielded),
            RowKind::Blocked => self.block(client, row),
            RowKind::Taken => self.confirm(client, row.used.get() as usize, row.time),
            RowKind::Missed => self.miss(memory, client, row),
            RowKind::Domain => self.change_domain(memory, DomainIndex::at(row.number as usize), row.time),
            RowKind::Unknown => {}
        }
    }

    /// A client that is found was one before, and its row was lost or read by another decider.
    fn join(&mut self, memory: &Memory, number: ClientId, time: Nanoseconds, is_found: bool) {
        self.leave(number, time);
        let Some(view) = memory.task(number) else { return };
        let (joined, generation, weight) = (view.joined, view.generation, view.weight);
        let share = self.share_in(weight, view.domain);
        self.policy.add(number, view.domain, share, time);
        self.policy.set_allowed(number, view.allowed);
        let client = Client {
            joined,
            generation,
            domain: view.domain,
            weight,
            share,
            allowed: view.allowed,
            can_run: false,
            is_away: true,
            is_ready: false,
            used: Nanoseconds::ZERO,
            told: Nanoseconds::ZERO,
            slice: Nanoseconds::ZERO,
            processor: None,
            barred_since: None,
            is_found,
        };
        self.clients.put(number, client);
    }

    fn leave(&mut self, number: ClientId, time: Nanoseconds) {
        self.set_ready(number, false);
        self.has_given_way(number);
        if self.clients.take(number).is_some() {
            self.forget(number);
            self.policy.remove(number, time);
        }
    }

    /// A client is not chosen any more. An answer that is still there comes back as missed: the client does not
    /// wait, or has begun to wait anew.
    fn forget(&mut self, number: ClientId) {
        if let Some(processor) = self.processor_of(number) {
            self.chosen[processor] = None;
        }
        self.aside.forget(number);
    }

    /// The processor that a client was chosen for.
    fn processor_of(&self, number: ClientId) -> Option<usize> {
        self.chosen.iter().position(|chosen| chosen.is_some_and(|chosen| chosen.client == number))
    }

    /// Whoever changes whether a client is ready or can run, or where, does it by this: they are counted.
    fn alter(&mut self, number: ClientId, change: impl FnOnce(&mut Client)) {
        let Some(client) = self.clients.get(number) else { return };
        let states = |client: &Client| (client.is_ready.then_some(client.allowed), client.waits_for());
        let before = states(client);
        change(client);
        let after = states(client);
        for (crowds, before, after) in
            [(&mut self.ready, before.0, after.0), (&mut self.waiting, before.1, after.1)]
        {
            if before != after {
                before.iter().for_each(|allowed| crowds.remove(number, *allowed));
                after.iter().for_each(|allowed| crowds.add(number, *allowed));
            }
        }
    }

    fn set_ready(&mut self, number: ClientId, is_ready: bool) {
        self.alter(number, |client| client.is_ready = is_ready);
    }

    fn set_can_run(&mut self, number: ClientId, can_run: bool) {
        self.alter(number, |client| client.can_run = can_run);
    }

    /// The policy is told that a client that it had chosen stops, after it has used this.
    fn ran(&mut self, number: ClientId, ran: Nanoseconds, stop: Stop, time: Nanoseconds) {
        self.policy.ran(number, ran, stop, time);
        if stop == Stop::Blocked {
            self.ahead.note(number);
        }
        self.set_ready(number, stop != Stop::Blocked);
    }

    fn share_in(&self, weight: u32, domain: DomainIndex) -> Share {
        let weights = self.path(domain).filter_map(|domain| self.weights.get(domain.index()).copied());
        share_in(weight, weights.filter(|weight| *weight != 0))
    }

    /// A domain, and those in which it is, up to the topmost one.
    fn path(&self, domain: DomainIndex) -> impl Iterator<Item = DomainIndex> {
        let above = |domain: &DomainIndex| self.parents.get(domain.index()).copied();
        let path = std::iter::successors(Some(domain), above).take(DEEPEST);
        path.take_while(|domain| *domain != DomainIndex::ROOT)
    }

    fn change(&mut self, memory: &Memory, number: ClientId, time: Nanoseconds) {
        let Some(view) = memory.task(number) else { return };
        let share = self.share_in(view.weight, view.domain);
        let Some(client) = self.clients.get(number) else { return };
        client.weight = view.weight;
        // Another one in a domain that is another one is told below, with the domain.
        if client.share != share && client.domain == view.domain {
            client.share = share;
            self.policy.set_share(number, share, time);
        }
        if client.allowed != view.allowed {
            self.change_allowed(number, view.allowed, time);
        }
        if self.clients.get(number).is_some_and(|client| client.domain != view.domain) {
            self.change_home(memory, number, view.domain, share, time);
        }
    }

    /// A client has come to another domain. One that runs is taken for blocked until it has stopped.
    fn change_home(
        &mut self,
        memory: &Memory,
        number: ClientId,
        domain: DomainIndex,
        share: Share,
        time: Nanoseconds,
    ) {
        if let Some(processor) = self.alone_at(number) {
            self.take_back(memory, processor, time);
        }
        let runs = self.processor_of(number).is_some_and(|processor| !memory.take_back(processor));
        // The domain in which it was pays for what it has used by decision.
        if runs || self.aside.has(number) {
            self.stop(number, Stop::Preempted, time);
        }
        let Some(client) = self.clients.get(number) else { return };
        (client.domain, client.share) = (domain, share);
        // What it has used is the former domain's; what it had alone, no other one wanted.
        client.told = client.used;
        let (was_away, allowed) = (std::mem::replace(&mut client.is_away, true), client.allowed);
        client.processor = None;
        memory.set_ahead(number, None);
        self.set_ready(number, false);
        self.forget(number);
        self.policy.remove(number, time);
        self.policy.add(number, domain, share, time);
        self.policy.set_allowed(number, allowed);
        if !was_away && !runs {
            self.wake(memory, number, time);
        }
    }

    fn change_allowed(&mut self, number: ClientId, allowed: u64, time: Nanoseconds) {
        if self.aside.has(number) {
            self.stop(number, Stop::Preempted, time);
        }
        self.alter(number, |client| client.allowed = allowed);
        self.policy.set_allowed(number, allowed);
    }

    fn change_domain(&mut self, memory: &Memory, number: DomainIndex, time: Nanoseconds) {
        let Some(known) = self.weights.get_mut(number.index()) else { return };
        let view = memory.domain(number);
        let weight = view.map_or(0, |view| view.weight.max(1));
        let before = std::mem::replace(known, weight);
        // It has gone; or another one has its number already, which was not seen to go.
        let is_elsewhere = view.is_none_or(|view| view.parent != self.parents[number.index()]);
        if before != 0 && is_elsewhere {
            self.policy.remove_domain(number);
        }
        let Some(view) = view else { return };
        self.parents[number.index()] = view.parent;
        // Policies take one that they do not know for the root. It may have the greater number.
        if self.weights.get(view.parent.index()) == Some(&0) {
            self.change_domain(memory, view.parent, time);
        }
        self.policy.add_domain(number, view.parent, share(weight));
        // Clients of one that was not known, because rows were lost, are looked at after the domains.
        if before == 0 || before == weight {
            return;
        }
        self.policy.set_domain_share(number, share(weight), time);
        self.set_shares_in(number, time);
    }

    /// A domain has another weight, and with it all that is in it.
    fn set_shares_in(&mut self, domain: DomainIndex, time: Nanoseconds) {
        for number in ClientId::first(CLIENTS as u32) {
            let Some(client) = self.clients.get(number) else { continue };
            let (weight, home) = (client.weight, client.domain);
            if !self.path(home).any(|above| above == domain) {
                continue;
            }
            let share = self.share_in(weight, home);
            if let Some(client) = self.clients.get(number) {
                client.share = share;
            }
            self.policy.set_share(number, share, time);
        }
    }

    /// A client waits for a processor; if it was chosen, it has had one.
    fn wait(&mut self, memory: &Memory, number: ClientId, row: Row, stop: Stop) {
        let Some(client) = self.clients.get(number) else { return };
        client.generation = row.generation;
        self.stop(number, stop, row.time);
        if let Some(event) = row.event {
            self.tell_of_event(memory, number, event, row.time);
        }
        self.resume(memory, number, row.time);
    }

    /// An event wakes a client, which the policy may take for one that is awake.
    fn tell_of_event(&mut self, memory: &Memory, number: ClientId, event: Event, time: Nanoseconds) {
        if self.clients.get(number).is_none_or(|client| !client.is_away) {
            return;
        }
        if let Some(processor) =
            self.policy.observe(Observation::EventPending { client: number, event }, time)
        {
            self.preempt(memory, processor.index(), time);
        }
    }

    /// A client wants a processor that the policy may take for blocked.
    fn resume(&mut self, memory: &Memory, number: ClientId, time: Nanoseconds) {
        self.set_can_run(number, true);
        if self.clients.get(number).is_some_and(|client| client.is_away) {
            self.wake(memory, number, time);
        }
    }

    /// If a client is not chosen, the policy takes it for one that waits, and is told when it chooses it.
    fn block(&mut self, number: ClientId, row: Row) {
        self.set_can_run(number, false);
        self.stop(number, Stop::Blocked, row.time);
    }

    /// A client runs on a processor without a decision, as a rule because no other one waited: the policy is
    /// asked, and chooses it where it has no other choice. If it has, the client is charged when it is
    /// chosen.
    fn confirm(&mut self, number: ClientId, processor: usize, time: Nanoseconds) {
        let is_ready = self.clients.get(number).is_some_and(|client| client.is_ready);
        if !is_ready || !self.is_empty(processor) {
            return;
        }
        if self.alone_on(processor) == Some(number) {
            return self.put_alone(processor, number, time);
        }
        let Some(decision) = self.pick(processor, time) else { return };
        if decision.client != number {
            return self.ran(decision.client, Nanoseconds::ZERO, Stop::Preempted, time);
        }
        self.put(processor, number, processor, time);
    }

    /// A client is chosen for a processor; the policy has done so for this one, or for another one.
    fn put(&mut self, processor: usize, number: ClientId, by: usize, time: Nanoseconds) {
        let Some(client) = self.clients.get(number) else { return };
        client.processor = Some(processor).filter(|processor| *processor == by);
        client.barred_since = None;
        let generation = client.generation;
        self.chosen[processor] = Some(Chosen { client: number, generation, at: time, by, is_alone: false });
    }

    /// Who alone may run on a processor, while the policy, which knows no bounds, may choose others for it. They would lose their
    /// turns. A policy by which clients displace others has to know who runs: it would take the processor for idle, and have a
    /// client that wakes wait for it.
    fn alone_on(&self, processor: usize) -> Option<ClientId> {
        let is_to_know = self.policy.knows_bounds() || !self.policy.keeps(ProcessorId::at(processor));
        if is_to_know { None } else { self.waiting.alone_on(processor) }
    }

    /// A client has a processor without the policy's having been asked. The policy takes it for one that waits, and charges it when it
    /// chooses it.
    fn put_alone(&mut self, processor: usize, number: ClientId, time: Nanoseconds) {
        self.set_can_run(number, false);
        let Some(client) = self.clients.get(number) else { return };
        (client.processor, client.barred_since) = (None, None);
        let generation = client.generation;
        self.chosen[processor] =
            Some(Chosen { client: number, generation, at: time, by: processor, is_alone: true });
    }

    /// The processor that a client has, or is to have, without the policy's having been asked.
    fn alone_at(&self, number: ClientId) -> Option<usize> {
        let is_alone = |chosen: Chosen| chosen.client == number && chosen.is_alone;
        self.chosen.iter().position(|chosen| chosen.is_some_and(is_alone))
    }

    /// A decision came late: the client waits again, has left, or runs without a decision. That it stops will
    /// be told.
    fn miss(&mut self, memory: &Memory, number: ClientId, row: Row) {
        if self.chosen.iter().flatten().any(|chosen| chosen.is_about(number, row.generation)) {
            let waits = memory.task(number).is_some_and(|task| task.activity == Activity::Waiting);
            let was_alone = self.alone_at(number).is_some();
            self.stop(number, if waits { Stop::Preempted } else { Stop::Blocked }, row.time);
            if was_alone && waits {
                self.resume(memory, number, row.time);
            }
        } else if self.is_unseen(memory, number, row.generation) {
            self.resume(memory, number, row.time);
        }
    }

    /// Whether a client waits that the policy takes for blocked: it was to run alone, and others came to wait before it turned out that it
    /// could not.
    fn is_unseen(&mut self, memory: &Memory, number: ClientId, generation: u32) -> bool {
        let waits = memory.task(number).is_some_and(|task| task.activity == Activity::Waiting);
        let client = self.clients.get(number);
        let is_same = |client: &Client| generation_bits(client.generation) == generation_bits(generation);
        waits && client.is_some_and(|client| !client.can_run && is_same(client))
    }

    /// A client is chosen no more, if it was.
    fn stop(&mut self, number: ClientId, stop: Stop, time: Nanoseconds) {
        if let Some(processor) = self.alone_at(number) {
            // The policy has not chosen it.
            self.chosen[processor] = None;
            return;
        }
        if self.processor_of(number).is_none() && !self.aside.has(number) {
            return;
        }
        self.forget(number);
        let Some(client) = self.clients.get(number) else { return };
        client.is_away = stop == Stop::Blocked;
        let ran = client.charge();
        self.ran(number, ran, stop, time);
    }

    fn wake(&mut self, memory: &Memory, number: ClientId, time: Nanoseconds) {
        if let Some(client) = self.clients.get(number) {
            client.is_away = false;
        }
        self.set_ready(number, true);
        if let Some(processor) = self.policy.wake(number, time) {
            self.preempt(memory, processor.index(), time);
        }
    }

    /// What was chosen for a processor gives way. If it runs already, it is charged now for the most that it can
    /// have used; what was too much is given back when it has stopped.
    fn preempt(&mut self, memory: &Memory, processor: usize, time: Nanoseconds) {
        let Some(processor) = self.place_of(memory, processor) else { return };
        let Some(Some(chosen)) = self.chosen.get(processor).copied() else { return };
        self.counts.preempted += 1;
        if !self.take_back(memory, processor, time) {
            if let Some(client) = self.clients.get(chosen.client) {
                client.used = match memory.task(chosen.client).map(|task| task.activity) {
                    Some(Activity::Interrupted(used)) => used,
                    _ => client.used.max(client.told).saturating_add(time.saturating_sub(chosen.at)),
                };
            }
            self.stop(chosen.client, Stop::Preempted, time);
            self.preempts |= 1 << processor;
            self.gives_way[processor] = chosen.client;
        }
    }

    /// A client has left its processor by itself, or because another one went ahead.
    fn has_given_way(&mut self, number: ClientId) {
        for processor in processors(self.preempts) {
            if self.gives_way[processor] == number {
                self.preempts &= !(1 << processor);
            }
        }
    }

    fn have_give_way(&mut self, memory: &Memory) {
        for processor in processors(std::mem::take(&mut self.preempts)) {
            memory.preempt(processor, self.gives_way[processor]);
        }
    }

    /// Where the client runs that the policy has on a processor: elsewhere, if that is absent.
    fn place_of(&self, memory: &Memory, processor: usize) -> Option<usize> {
        if (memory.online() & !self.absent) >> (processor & 63) & 1 == 1 {
            return Some(processor);
        }
        self.chosen.iter().position(|chosen| chosen.is_some_and(|chosen| chosen.is_for(processor)))
    }

    /// Takes the answer of a processor back, unless it is carried out already.
    fn take_back(&mut self, memory: &Memory, processor: usize, time: Nanoseconds) -> bool {
        let Some(chosen) = self.chosen[processor] else { return false };
        if !memory.take_back(processor) {
            return false;
        }
        self.chosen[processor] = None;
        if chosen.is_alone {
            self.resume(memory, chosen.client, time);
        } else {
            self.ran(chosen.client, Nanoseconds::ZERO, Stop::Preempted, time);
        }
        true
    }

    fn look_at_domains(&mut self, memory: &Memory, now: Nanoseconds) {
        for domain in (0..DOMAINS).map(DomainIndex::at) {
            self.change_domain(memory, domain, now);
        }
    }

    fn look_at_clients(&mut self, memory: &Memory, now: Nanoseconds) {
        for number in ClientId::first(CLIENTS as u32) {
            self.look_at(memory, number, now);
        }
    }

    fn look_at(&mut self, memory: &Memory, number: ClientId, now: Nanoseconds) {
        let Some(view) = memory.task(number) else { return };
        let known = self.clients.get(number).map(|client| client.joined);
        let TaskView { joined, activity, generation, .. } = view;
        if activity == Activity::Absent {
            return self.leave(number, now);
        }
        if known != Some(joined) {
            self.join(memory, number, now, true);
        }
        self.change(memory, number, now);
        let is_alone = self.alone_at(number).is_some();
        let Some(client) = self.clients.get(number) else { return };
        let used = client.used;
        let row =
            Row { time: now, used, number: number.get(), generation, kind: RowKind::Unknown, event: None };
        match activity {
            // One that is to run alone has not begun yet.
            Activity::Waiting if generation == client.generation && is_alone => {}
            Activity::Waiting if generation != client.generation || !client.can_run => {
                self.wait(memory, number, row, Stop::Preempted);
            }
            Activity::Away if client.can_run => self.block(number, row),
            Activity::Waiting
            | Activity::Away
            | Activity::Running
            | Activity::Interrupted(_)
            | Activity::Absent => {}
        }
    }

    /// The policy's periodic interrupt, for each processor, if it is due. One that was missed is not made up for.
    fn tick(&mut self, memory: &Memory, now: Nanoseconds) {
        let Some(period) = self.tick_period else { return };
        if *self.next_tick.get_or_insert(now) > now {
            return;
        }
        self.next_tick = Some(now.saturating_add(period));
        for processor in 0..self.chosen.len() {
            if self.policy.tick(ProcessorId::at(processor), now) {
                self.preempt(memory, processor, now);
            }
        }
    }

    /// Takes back what was decided for processors that do not carry it out: they have gone, or a task of a higher
    /// class has them. One that comes back says that it is idle, or has this thread decide there: it carries out what
    /// was decided for it when this thread yields.
    fn find_absent(&mut self, memory: &Memory, now: Nanoseconds, own: usize) {
        let online = memory.online();
        self.absent &= !(memory.idle() | 1 << own);
        for processor in 0..self.chosen.len() {
            let is_old = |chosen: Chosen| now.saturating_sub(chosen.at) >= MOST_UNUSED;
            let is_online = online >> processor & 1 == 1;
            if !is_online {
                self.take_back(memory, processor, now);
            } else if processor != own
                && self.chosen[processor].is_some_and(is_old)
                && self.take_back(memory, processor, now)
            {
                self.absent |= 1 << processor;
            }
        }
    }

    /// First this processor, then those that have nothing to run, then the others.
    fn fill_all(&mut self, memory: &Memory, now: Nanoseconds, own: usize) {
        let (online, idle) = (memory.online() & !self.absent, memory.idle() & !(1 << own));
        self.fill(memory, now, 1 << own & online);
        self.fill(memory, now, idle & online);
        self.fill(memory, now, online & !idle & !(1 << own));
        for processor in processors(!online & self.all()) {
            self.choose_for_absent(processor, online, now);
        }
        // What was put aside for one processor may run on another one.
        if !self.aside.is_empty() {
            self.fill(memory, now, online);
        }
        let free = idle | 1 << own;
        for processor in processors(free & online) {
            if self.is_empty(processor) {
                self.fill_from(memory, now, processor, online & !free);
            }
        }
        let woken = processors(idle & online).filter(|processor| !self.is_empty(*processor));
        let woken = woken.fold(0, |mask, processor| mask | 1 << processor);
        if woken != 0 {
            memory.wake(woken);
        }
    }

    /// All processors that there may be.
    fn all(&self) -> u64 {
        u64::MAX >> (64 - self.chosen.len().clamp(1, 64))
    }

    /// Whether there is such a processor, and nothing is chosen for it.
    fn is_empty(&self, processor: usize) -> bool {
        self.chosen.get(processor).is_some_and(Option::is_none)
    }

    /// Finds clients for these processors, where there is none.
    fn fill(&mut self, memory: &Memory, now: Nanoseconds, mask: u64) {
        for processor in processors(mask) {
            let runs_on = self.is_alone_no_more(processor) && !self.take_back(memory, processor, now);
            if runs_on {
                // It runs on as one that the kernel's side took by turn, until its slice ends: to have it give way each time that another
                // one comes would leave a processor that has little time with nothing but that.
                self.chosen[processor] = None;
            }
            if self.is_empty(processor) {
                self.choose(memory, now, processor);
            }
            // What is chosen then is not late before that slice is over.
            if let Some(chosen) = self.chosen[processor].as_mut().filter(|_| runs_on) {
                chosen.at = chosen.at.saturating_add(self.slice);
            }
        }
    }

    /// Whether one that has a processor alone finds others waiting that may run there: now the policy is asked.
    fn is_alone_no_more(&self, processor: usize) -> bool {
        let chosen = self.chosen.get(processor).copied().flatten();
        chosen.is_some_and(|chosen| chosen.is_alone) && self.waiting.any_on(processor)
    }

    /// A processor has nothing to run: what others have not begun yet, because something else runs there, is
    /// decided again.
    fn fill_from(&mut self, memory: &Memory, now: Nanoseconds, processor: usize, others: u64) {
        for other in processors(others) {
            let may = self.chosen.get(other).copied().flatten().is_some_and(|chosen| {
                self.clients.get(chosen.client).is_some_and(|client| client.may_run_on(processor))
            });
            if may && self.take_back(memory, other, now) && self.choose(memory, now, processor) {
                return;
            }
        }
    }

    /// Finds the next client of a processor, and answers the kernel's side.
    fn choose(&mut self, memory: &Memory, now: Nanoseconds, processor: usize) -> bool {
        if let Some(next) = self.take_aside(processor) {
            // The policy has another one in its place meanwhile.
            self.answer(memory, processor, next, false, now);
        } else if let Some(alone) = self.alone_on(processor) {
            self.have_run_alone(memory, processor, alone, now);
        } else if let Some(next) = self.ask_policy(processor, now) {
            let keeps = self.policy.keeps(ProcessorId::at(processor));
            self.answer(memory, processor, next, keeps, now);
        } else {
            return false;
        }
        true
    }

    /// The first one that was put aside and may run on this processor.
    fn take_aside(&mut self, processor: usize) -> Option<PutAside> {
        let clients = &mut self.clients;
        self.aside.take(|aside| {
            clients.get(aside.decision.client).is_some_and(|client| client.may_run_on(processor))
        })
    }

    /// The policy's next one that may run on this processor. If few were before it, they are given back: their turn comes where they may
    /// run. If many were, or none is found, they stay aside.
    fn ask_policy(&mut self, processor: usize, now: Nanoseconds) -> Option<PutAside> {
        let before = self.aside.len();
        for _ in 0..MOST_ASIDE {
            if !self.is_to_ask(processor) {
                return None;
            }
            let decision = self.pick(processor, now)?;
            if self.clients.get(decision.client)?.may_run_on(processor) {
                if self.aside.len() - before <= MOST_GIVEN_BACK {
                    self.give_back(before, now);
                }
                return Some(PutAside { decision, by: processor });
            }
            self.aside.put(decision, processor);
        }
        None
    }

    /// Whether the policy has one for a processor. If it knows bounds, it is also to learn there who does not want it any more.
    fn is_to_ask(&self, processor: usize) -> bool {
        if self.policy.knows_bounds() { &self.ready } else { &self.waiting }.any_on(processor)
    }

    /// Gives those back that were put aside last, so that this number is left. One that has waited for long stays: the policy may never
    /// choose it for a processor on which it may run.
    fn give_back(&mut self, left: usize, now: Nanoseconds) {
        // The last one first: each goes to the front of those that wait.
        for nth in (left..self.aside.len()).rev() {
            let Some(client) = self.aside.at(nth) else { continue };
            let is_late = self.clients.get(client).is_some_and(|client| client.has_been_barred(now));
            if !is_late {
                self.aside.forget(client);
                self.ran(client, Nanoseconds::ZERO, Stop::Preempted, now);
            }
        }
    }

    /// The policy chooses for an absent processor as for any other: it may have clients there, or believe that it has
    /// processors for all of them. What it has chosen runs on others, in turn with theirs.
    fn choose_for_absent(&mut self, processor: usize, present: u64, now: Nanoseconds) {
        for _ in 0..MOST_ASIDE {
            if self.client_by(processor, present).is_some() {
                return;
            }
            let Some(decision) = self.pick(processor, now) else { return };
            self.aside.put(decision, processor);
        }
    }

    /// The client that the policy has chosen for this processor, wherever it runs or is to run, of these.
    fn client_by(&mut self, processor: usize, present: u64) -> Option<ClientId> {
        let chosen = self.chosen.iter().flatten().find(|chosen| chosen.is_for(processor));
        let clients = &mut self.clients;
        let may = |number| clients.get(number).is_some_and(|client| client.allowed & present != 0);
        chosen.map(|chosen| chosen.client).or_else(|| self.aside.find(processor, may))
    }

    /// A client that the policy has chosen, and that can run.
    fn pick(&mut self, processor: usize, now: Nanoseconds) -> Option<Decision> {
        loop {
            let decision = self.policy.pick(ProcessorId::at(processor), now)?;
            self.counts.decisions += 1;
            self.set_ready(decision.client, false);
            let Some(client) = self.clients.get(decision.client) else {
                self.policy.remove(decision.client, now);
                continue;
            };
            client.slice = decision.slice_ns;
            self.slice = decision.slice_ns.min(QUANTUM);
            if client.can_run {
                return Some(decision);
            }
            client.is_away = true;
            let ran = client.charge();
            self.ran(decision.client, ran, Stop::Blocked, now);
        }
    }

    /// Tells the kernel's side of one that the policy has not chosen.
    fn have_run_alone(&mut self, memory: &Memory, processor: usize, number: ClientId, now: Nanoseconds) {
        let Some(client) = self.clients.get(number) else { return };
        let answer =
            Answer { client: number, generation: client.generation, slice: self.slice, keeps: false };
        memory.put_answer(processor, answer.to_bits());
        self.put_alone(processor, number, now);
    }

    /// Tells the kernel's side.
    fn answer(&mut self, memory: &Memory, processor: usize, next: PutAside, keeps: bool, now: Nanoseconds) {
        let PutAside { decision, by } = next;
        let Some(client) = self.clients.get(decision.client) else { return };
        let generation = client.generation;
        let answer = Answer { client: decision.client, generation, slice: decision.slice_ns, keeps };
        memory.put_answer(processor, answer.to_bits());
        self.put(processor, decision.client, by, now);
    }
}

/// What a policy says once: it is asked for before each row.
fn tick_period(policy: &Owned) -> Option<Nanoseconds> {
    policy.tick_ns().filter(|period| !period.is_zero())
}

/// The numbers in a mask.
fn processors(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lowest < 64).then_some(lowest)
    })
}
