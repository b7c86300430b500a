//! Virtual-time round robin: the fairness of fair queueing at the cost of round robin (Nieh, Vaill,
//! Zhong: Virtual-Time Round-Robin: An O(1) Proportional Share Scheduler, USENIX 2001, §3).
//!
//! The run queue is sorted by share. It is served from its head, one quantum each, as long as the next
//! client has not had its part of the time yet (the VFT inequality), and from the head again when it
//! has: larger shares come round more often. A time counter for each client, set to its share at the
//! beginning of a cycle, makes every cycle end with everybody having had exactly what was due. The rules
//! are in [`queue`], with where they differ from the paper.
//!
//! | | |
//! |---|---|
//! | selection | constant time; with [`Reset::AtOnce`] one in a cycle takes a step for each client |
//! | insertion | constant time beside the last neighbours; else a walk of about √(n / 16) steps, or four steps in an array of shares ([`Vtrr::ranged`]) and one for each 16 to 32 clients of equal share that come behind |
//! | removal | constant time |
//! | fairness | exact at the end of every cycle; within it the paper's simulations show errors of -3.8 to 10.6 quanta (§4.1), and no bound is proved |
//! | several processors | one queue serves all; shares that one processor cannot give are cut ([`ceiling`]) |
//!
//! # Slices that are not used up
//!
//! Time is charged to the nanosecond. Used parts of quanta add up, and the counter goes down when they
//! make a whole one; so a client that always blocks just before the end of its quantum has no more time
//! than one that does not. Who has to give way before a whole quantum is used, or not at all because the
//! decision was given back, is selected again by the next pick. Who yields gives up the rest of its
//! quantum.
//!
//! # Coming and going
//!
//! Who arrives is due what the others are, in proportion; who has been away in the same cycle no more
//! than it had left, and a part of a quantum that it used too much is not forgotten in later cycles
//! either. Who comes to an empty queue begins a cycle. A new share is a departure and an arrival; it
//! cuts what is due in the current cycle at once and adds to it from the next one on.
//!
//! # Several processors
//!
//! A client that runs keeps its place and is passed over. When nobody is left who is due something and
//! does not run, the next cycle begins; who is due something in the old one still keeps one quantum of it.

mod ceiling;
mod group;
mod insertion;
mod left;
mod queue;
mod ranged;
mod slot;
mod store;

use alloc::vec;
use alloc::vec::Vec;

use insertion::Insertion;
use left::Left;
use queue::Queue;
use store::{Place, Store};

use crate::roster::Roster;
use crate::{ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

pub use group::GroupVtrr;
pub use queue::{Reset, VirtualTime};

/// The virtual-time round-robin policy.
pub struct Vtrr {
    name: &'static str,
    /// Who is in the queue is ready here, whether it runs or not: that it runs is in its slot.
    roster: Roster,
    store: Store,
    queue: Queue,
    insertion: Insertion,
    left: Vec<Left>,
    /// Where the client of the last decision is, unless the queue has changed.
    recent: Place,
    processors: ProcessorId,
}

impl Vtrr {
    /// Without clients; new ones find their place by a walk through the queue.
    #[must_use]
    pub fn new(setup: &Setup) -> Vtrr {
        Vtrr {
            name: "vtrr",
            roster: Roster::new(setup),
            store: Store::new(setup.clients, 1),
            queue: Queue::new(0, setup.quantum_ns, Reset::Incremental),
            insertion: Insertion::neighbours(),
            left: vec![Left::NEVER; setup.clients as usize],
            recent: Place::NOWHERE,
            processors: setup.processors.max(1),
        }
    }

    /// Without clients; new ones whose share is no larger than `largest` find their place in constant time
    /// by an array of all shares, four bytes each.
    #[must_use]
    pub fn ranged(setup: &Setup, largest: Share) -> Vtrr {
        Vtrr { name: "vtrr-ranged", insertion: Insertion::ranged(largest.get()), ..Vtrr::new(setup) }
    }

    /// Resets counters in another way.
    #[must_use]
    pub fn with_reset(self, setup: &Setup, reset: Reset) -> Vtrr {
        Vtrr { queue: Queue::new(0, setup.quantum_ns, reset), ..self }
    }

    /// The time counter of a client in the queue: the quanta that it is due in this cycle.
    #[must_use]
    pub fn counter(&self, client: ClientId) -> Option<u32> {
        let slot = self.store.get(self.store.find(client)?)?;
        Some(self.queue.counter(slot))
    }

    /// The clients in the queue, running ones included, in its order, with their counters.
    pub fn run_queue(&self) -> impl Iterator<Item = (ClientId, u32)> {
        self.queue.slots(&self.store).map(|slot| (slot.entity, self.queue.counter(slot)))
    }

    /// QVT, the virtual time of the queue; `None` when nobody is in it.
    #[must_use]
    pub fn queue_virtual_time(&self) -> Option<VirtualTime> {
        self.queue.virtual_time()
    }

    /// VFT, the virtual time at which a client in the queue will have had one quantum more.
    #[must_use]
    pub fn virtual_finishing_time(&self, client: ClientId) -> Option<VirtualTime> {
        let slot = self.store.get(self.store.find(client)?)?;
        Some(self.queue.virtual_finishing_time(slot))
    }

    /// The number of the scheduling cycle. One ends when nobody is due anything, or the queue is empty.
    #[must_use]
    pub fn cycle(&self) -> u64 {
        self.queue.cycle()
    }

    fn enter(&mut self, client: ClientId) {
        let share = self.roster.share(client).get();
        let left = self.left[client as usize];
        self.queue.insert(&mut self.store, &mut self.insertion, (client, share), left);
        self.readjust();
    }

    fn leave(&mut self, place: Place, client: ClientId) {
        self.left[client as usize] = self.queue.remove(&mut self.store, &mut self.insertion, place);
        self.readjust();
    }

    fn readjust(&mut self) {
        if self.processors > 1 {
            self.queue.readjust(&self.store, self.processors);
        }
    }

    /// Where a client that runs is.
    fn running(&self, client: ClientId) -> Option<Place> {
        let runs_at = |place| self.store.get(place).is_some_and(|slot| slot.entity == client && slot.busy);
        if runs_at(self.recent) {
            return Some(self.recent);
        }
        self.store.find(client).filter(|&place| runs_at(place))
    }
}

impl Policy for Vtrr {
    fn name(&self) -> &'static str {
        self.name
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.left[client as usize] = Left::NEVER;
        }
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        self.roster.remove(client);
        if let Some(place) = self.store.find(client) {
            self.leave(place, client);
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        self.roster.set_share(client, share);
        let Some(place) = self.store.find(client) else { return };
        let busy = self.store.get(place).is_some_and(|slot| slot.busy);
        self.leave(place, client);
        self.enter(client);
        if let Some(slot) = self.store.find(client).and_then(|place| self.store.get_mut(place)) {
            slot.busy = busy;
        }
    }

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            self.enter(client);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        if !self.roster.has_processor(processor) {
            return None;
        }
        let place = self.queue.select(&mut self.store)?;
        let slot = self.store.get_mut(place)?;
        slot.busy = true;
        let client = slot.entity;
        self.recent = place;
        Some(Decision { client, slice_ns: self.queue.quantum_ns(), grant: Grant::Share })
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        let Some(place) = self.running(client) else { return };
        // Who yields gives up the rest of its quantum: it could otherwise hold up the cycle's end, and
        // with it all who have had their due, by yielding again and again.
        let least_ns = if stop == Stop::Yielded { self.queue.quantum_ns() } else { 0 };
        self.queue.settle(&mut self.store, place, ran_ns.max(least_ns));
        if let Some(slot) = self.store.get_mut(place) {
            slot.busy = false;
        }
        if stop == Stop::Blocked {
            self.roster.run(client);
            self.roster.stop(client, stop);
            self.leave(place, client);
        } else if stop == Stop::Preempted {
            self.queue.stand_before(&self.store, place);
        }
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("cycles", self.queue.cycle());
        each("insertions beside a neighbour", self.insertion.beside);
        each("insertions after a search", self.insertion.searched);
    }
}
