//! Group virtual-time round robin: a tree of VTRR queues. A domain has its share of what its parent has,
//! however many clients are in it; inside a domain, its members share that in the same way.
//!
//! The queues, their counters and virtual times are those of [`Vtrr`](super::Vtrr). A domain stands in its
//! parent's queue as a client does, as long as at least one of its members is ready or runs, and is charged
//! whenever a member is charged. The hierarchy is that of fair queueing (Bennett and Zhang: Hierarchical
//! Packet Fair Queueing Algorithms, SIGCOMM 1996) with round robin in its nodes.
//!
//! | | |
//! |---|---|
//! | selection | constant time for each level of domains from the root to the client |
//! | insertion, removal | that of [`Vtrr`](super::Vtrr) in one queue or more, and a step for each processor and level |
//! | fairness | that of VTRR in each queue: exact at the end of each queue's cycle |
//! | several processors | one tree serves all; a domain without idle members is passed over |
//!
//! An insertion or a removal reaches the parents' queues where a domain wakes or falls asleep with its
//! member. Shares that a domain's members cannot use together on several processors are not cut.
//!
//! If a domain's member stops before the end of a quantum and another member is ready, the domain goes on
//! with that quantum: it is the domain's.
//!
//! A client of a domain that is not known when the client is added belongs to the root, and so does a
//! domain inside such a domain. Making a domain known again changes nothing.
//!
//! Where this differs from the VTRR paper: the paper has no groups, so the tree is an addition. In each
//! queue, what [`vtrr`](super) says holds, except that a client that needs more than one processor stays in
//! its queue, and that a share that is changed changes what is still due in the same cycle, in proportion.

use alloc::vec;
use alloc::vec::Vec;

use super::departure::Departure;
use super::insertion::Insertion;
use super::queue::Queue;
use super::slot::Entity;
use super::store::{SlotPlace, Store};
use crate::progress::Progress;
use crate::roster::Roster;
use crate::{ClientId, Decision, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

const ROOT: DomainIndex = DomainIndex::ROOT;

/// A domain: the queue of its members, and its place in its parent's queue.
struct DomainQueue {
    queue: Queue,
    parent: DomainIndex,
    share: Share,
    known: bool,
    /// The domains in it.
    children: u32,
    /// Members in the queue that can be selected: clients that do not run, and domains that have such
    /// members. With none, the domain's own slot is busy.
    idle: u32,
}

/// The group virtual-time round-robin policy.
pub struct GroupVtrr {
    roster: Roster,
    pub(super) store: Store,
    insertion: Insertion,
    domains: Vec<DomainQueue>,
    /// The domain in whose queue each client stands when it is ready.
    homes: Vec<DomainIndex>,
    /// What clients, and behind them domains, had when they left their queue.
    departures: Vec<Departure>,
    progress: Progress,
    /// The place of the client of the last decision, unless its queue has changed.
    recent: SlotPlace,
}

impl GroupVtrr {
    /// A policy without clients, and with no domain except the root.
    pub fn new(setup: &Setup) -> GroupVtrr {
        let domains = setup.domains.max(1);
        let entities = setup.clients.saturating_add(domains.into());
        GroupVtrr {
            roster: Roster::new(setup),
            store: Store::new(entities, domains.into()),
            insertion: Insertion::neighbours(),
            domains: DomainIndex::first(domains).map(|number| DomainQueue::new(number, setup)).collect(),
            homes: vec![ROOT; setup.clients as usize],
            departures: vec![Departure::NEVER; entities as usize],
            progress: Progress::new(setup, Queue::new(0, setup).quantum_ns),
            recent: SlotPlace::NOWHERE,
        }
    }

    /// The time counter of a client in its domain's queue.
    pub fn counter(&self, client: ClientId) -> Option<u32> {
        let home = *self.homes.get(client.index())?;
        let slot = self.store.get(self.store.find(client.into())?)?;
        Some(self.domains[home.index()].queue.counter(slot))
    }

    fn known(&self, domain: DomainIndex) -> bool {
        self.domains.get(domain.index()).is_some_and(|domain| domain.known)
    }

    fn clients(&self) -> u32 {
        self.homes.len() as u32
    }

    /// The number of a domain in its parent's queue: domains come behind the clients.
    fn entity(&self, domain: DomainIndex) -> Entity {
        Entity::new(self.clients() + u32::from(domain.get()))
    }

    /// The domain that an entity is, if it is not a client.
    fn domain(&self, entity: Entity) -> Option<DomainIndex> {
        let number = entity.get().checked_sub(self.clients())?;
        u16::try_from(number).ok().map(DomainIndex::new)
    }

    /// The next step up to the root: a domain as an entity, and its parent. The root itself is in no queue.
    fn above(&self, domain: DomainIndex) -> Option<(Entity, DomainIndex)> {
        (domain != ROOT).then(|| (self.entity(domain), self.domains[domain.index()].parent))
    }

    /// Puts a client into its domain's queue, and each domain above into its parent's if it was empty.
    fn enter(&mut self, client: ClientId, home: DomainIndex, now: Nanoseconds) {
        let (mut member, mut share, mut domain) = (client.into(), self.roster.share(client), home);
        loop {
            let was_empty = self.domains[domain.index()].queue.is_empty();
            // Busy until `mark` below, so that the domains above count idle members only once.
            self.insert(member, share, domain, true, now);
            let Some((entity, parent)) = self.above(domain).filter(|_| was_empty) else { break };
            (member, share, domain) = (entity, self.domains[domain.index()].share, parent);
        }
        self.mark(client.into(), home, false);
    }

    fn insert(&mut self, member: Entity, share: Share, domain: DomainIndex, busy: bool, now: Nanoseconds) {
        let unused_ns = self.unused_ns(domain, now);
        let queue = &mut self.domains[domain.index()].queue;
        let (departure, member) = (self.departures[member.index()], (member, share.get()));
        let place = queue.insert(&mut self.store, &mut self.insertion, member, departure, unused_ns);
        if let Some(slot) = self.store.get_mut(place) {
            slot.busy = busy;
        }
    }

    /// What members of a domain's queue have been charged, because a client in them runs, and not used yet.
    fn unused_ns(&self, domain: DomainIndex, now: Nanoseconds) -> Nanoseconds {
        let charged = self.progress.unused(now).filter(|&(client, _)| self.is_charged(client, domain));
        charged.map(|(_, unused_ns)| unused_ns).sum()
    }

    /// Whether a client that runs is charged in a domain's queue: the client, or the domain that it is inside
    /// of, stands there.
    fn is_charged(&self, client: ClientId, domain: DomainIndex) -> bool {
        let (mut member, mut home) = (client.into(), self.homes.get(client.index()).copied().unwrap_or(ROOT));
        while home != domain {
            let Some(above) = self.above(home) else { return false };
            (member, home) = above;
        }
        self.store.find(member).is_some()
    }

    /// Takes a client out of its domain's queue, and each domain that this leaves empty out of its parent's.
    fn leave(&mut self, client: ClientId, home: DomainIndex) {
        // While its slots are still there: it cannot be selected any more, and perhaps the domains above
        // cannot.
        self.mark(client.into(), home, true);
        let (mut member, mut domain) = (client.into(), home);
        loop {
            self.withdraw(member, domain);
            let emptied = self.domains[domain.index()].queue.is_empty();
            let Some(above) = self.above(domain).filter(|_| emptied) else { break };
            (member, domain) = above;
        }
    }

    fn withdraw(&mut self, member: Entity, domain: DomainIndex) {
        if let Some(place) = self.store.find(member) {
            let queue = &mut self.domains[domain.index()].queue;
            self.departures[member.index()] = queue.remove(&mut self.store, &mut self.insertion, place);
        }
    }

    /// Gives a member another share: a departure and an arrival. The new share counts from now on, and not only in the
    /// next cycle, which is seconds away where shares are weights of hundreds.
    fn change_share(&mut self, member: Entity, share: Share, domain: DomainIndex, now: Nanoseconds) {
        let slot = self.store.find(member).and_then(|place| self.store.get(place));
        let Some(busy) = slot.map(|slot| slot.busy) else { return };
        self.withdraw(member, domain);
        let departure = &mut self.departures[member.index()];
        *departure = departure.with_share(share.get());
        self.insert(member, share, domain, busy, now);
    }

    /// Notes whether a member can be selected, and what follows from that for the domains above it.
    fn mark(&mut self, member: Entity, domain: DomainIndex, busy: bool) {
        if let Some(place) = self.store.find(member) {
            self.mark_at(place, domain, busy);
        }
    }

    /// The same for the member that has this place in the domain's queue.
    fn mark_at(&mut self, place: SlotPlace, domain: DomainIndex, busy: bool) {
        let (mut place, mut domain) = (Some(place), domain);
        while let Some(slot) = place.and_then(|place| self.store.get_mut(place)) {
            if slot.busy == busy {
                return;
            }
            slot.busy = busy;
            let idle = &mut self.domains[domain.index()].idle;
            // The number of other idle members: only the first and the last idle one change the domain's own
            // slot.
            let others = if busy { *idle - 1 } else { *idle };
            *idle = others + u32::from(!busy);
            let Some((entity, parent)) = self.above(domain).filter(|_| others == 0) else { return };
            (place, domain) = (self.store.find(entity), parent);
        }
    }

    /// Charges what was used of a quantum to a client and to the domains above it, which go on with it.
    fn settle(&mut self, client: ClientId, home: DomainIndex, ran_ns: Nanoseconds, goes_on: bool) {
        let (mut member, mut domain, mut goes_on) = (client.into(), home, goes_on);
        while let Some(place) = self.store.find(member) {
            let queue = &mut self.domains[domain.index()].queue;
            queue.settle(&mut self.store, place, ran_ns);
            if goes_on {
                queue.stand_before(&self.store, place);
            }
            let Some(above) = self.above(domain) else { return };
            (member, domain) = above;
            // Whatever the client does, its domains go on with their quanta if they have other ready members.
            goes_on = true;
        }
    }

    /// The place of a client that runs.
    fn running(&self, client: ClientId) -> Option<SlotPlace> {
        // A number from here on is a domain's, and domains are busy without running.
        (client.get() < self.clients()).then(|| self.store.busy(client.into(), self.recent))?
    }
}

impl DomainQueue {
    /// An empty domain: the root, which is always known, or one that is to be made known.
    fn new(number: DomainIndex, setup: &Setup) -> DomainQueue {
        let queue = Queue::new(number.get().into(), setup);
        DomainQueue { queue, parent: ROOT, share: Share::ONE, known: number == ROOT, children: 0, idle: 0 }
    }
}

impl Policy for GroupVtrr {
    fn name(&self) -> &'static str {
        "group-vtrr"
    }

    fn add_domain(&mut self, domain: DomainIndex, parent: DomainIndex, share: Share) {
        let parent = if self.known(parent) { parent } else { ROOT };
        // A client of one that was forgotten may have woken.
        let is_free = |domain: &&mut DomainQueue| !domain.known && domain.queue.is_empty();
        if let Some(new) = self.domains.get_mut(domain.index()).filter(is_free) {
            (new.known, new.parent, new.share) = (true, parent, share);
            self.domains[parent.index()].children += 1;
            let entity = self.entity(domain);
            self.departures[entity.index()] = Departure::NEVER;
        }
    }

    fn remove_domain(&mut self, domain: DomainIndex) {
        let entry = self.domains.get_mut(domain.index()).filter(|_| domain != ROOT);
        let is_bare = |entry: &&mut DomainQueue| entry.known && entry.queue.is_empty() && entry.children == 0;
        if let Some(entry) = entry.filter(is_bare) {
            entry.known = false;
            let parent = entry.parent;
            self.domains[parent.index()].children -= 1;
        }
    }

    fn set_domain_share(&mut self, domain: DomainIndex, share: Share, now: Nanoseconds) {
        if !self.known(domain) {
            return;
        }
        self.domains[domain.index()].share = share;
        if let Some((entity, parent)) = self.above(domain) {
            self.change_share(entity, share, parent, now);
        }
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.homes[client.index()] = if self.known(domain) { domain } else { ROOT };
            self.departures[client.index()] = Departure::NEVER;
        }
    }

    fn remove(&mut self, client: ClientId, now: Nanoseconds) {
        self.roster.remove(client);
        self.progress.leave(client, now);
        if let Some(&home) = self.homes.get(client.index())
            && self.store.find(client.into()).is_some()
        {
            self.leave(client, home);
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, now: Nanoseconds) {
        self.roster.set_share(client, share);
        if let Some(&home) = self.homes.get(client.index()) {
            self.change_share(client.into(), share, home, now);
        }
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            self.enter(client, self.homes[client.index()], now);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        // A busy slot is never selected, so every domain on the way down has an idle member to select.
        let mut domain = ROOT;
        loop {
            let queue = &mut self.domains[domain.index()].queue;
            let (place, quantum_ns) = (queue.select(&mut self.store)?, queue.quantum_ns);
            let entity = self.store.get(place)?.entity;
            match self.domain(entity) {
                Some(inner) => domain = inner,
                None => {
                    self.recent = place;
                    self.mark_at(place, domain, true);
                    let client = entity.client();
                    self.progress.enter(processor, client, now);
                    return Some(Decision::by_share(client, quantum_ns));
                }
            }
        }
    }

    /// No client displaces another one.
    fn keeps(&self, _processor: ProcessorId) -> bool {
        true
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        let Some(place) = self.running(client) else { return };
        self.progress.leave(client, now);
        let home = self.homes[client.index()];
        let quantum_ns = self.domains[home.index()].queue.quantum_ns;
        // A client that yields gives up the rest of its quantum, and of its domains' (see Vtrr).
        let used_ns = if stop == Stop::Yielded { ran_ns.max(quantum_ns) } else { ran_ns };
        // As a rule the whole quantum was used, as it was charged: then no queue needs a search.
        if used_ns != quantum_ns {
            self.settle(client, home, used_ns, stop == Stop::Preempted);
        }
        self.mark_at(place, home, false);
        // To the roster a client in a queue is ready; it blocks only from running.
        if stop == Stop::Blocked {
            self.roster.run(client);
            self.roster.stop(client, stop);
            self.leave(client, home);
        }
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("cycles of the root", self.domains[ROOT.index()].queue.cycle());
        each("insertions beside a neighbour", self.insertion.beside);
        each("insertions after a search", self.insertion.searched);
    }
}
