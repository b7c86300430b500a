//! Virtual-time round robin: the fairness of fair queueing at the cost of round robin (Nieh, Vaill,
//! Zhong: Virtual-Time Round-Robin: An O(1) Proportional Share Scheduler, USENIX 2001, §3).
//!
//! The run queue is sorted by share. It is served from its head, one quantum for each client, as long as the
//! next client has not had its part of the time yet (the VFT inequality). Once it has, the queue is served
//! from the head again: larger shares have their turns more often. Each client has a time counter, set to its
//! share at the beginning of a cycle. The counters make every cycle end with every client having had exactly
//! what was due.
//!
//! | | |
//! |---|---|
//! | selection | constant time; with [`Reset::AtOnce`] linear in clients once in a cycle |
//! | insertion | constant time beside the last neighbours; otherwise a walk of about √(n / 32) steps |
//! | removal | constant time; on several processors, as many steps as there are processors |
//! | fairness | exact at the end of every cycle; within one, the paper has simulations (§4.1) and no bound |
//! | several processors | one queue serves all; a client that is due more than one processor has one alone |
//!
//! With [`Reset::AtOnce`], one selection in a cycle takes a step for each client; on several processors the
//! selections at the cycle's end do. In an array of shares ([`Vtrr::ranged`]), an insertion takes four steps
//! instead of the walk, and one for each 32 to 64 clients of equal share that stand behind. Every insertion
//! also takes a step for each processor.
//!
//! # Virtual time without virtual times
//!
//! The paper keeps for each client a time counter C and a virtual finishing time VFT, and for the queue a
//! virtual time QVT. In a scheduling cycle a client with share S that has had w quanta has C = S − w and VFT
//! = (w + 1) / S (quanta as the unit of time). When W quanta have been given to all clients, whose shares'
//! sum is T, QVT = W / T and ΣC = T − W. The VFT inequality is therefore
//!
//! ```text
//!   VFT(t) − QVT(t + Q) < Q / S   ⟺   w / S < (W + 1) / T   ⟺   C · T > S · (ΣC − 1)
//! ```
//!
//! The counter says it all: virtual time is the part of the cycle's due that a client has had. So only the
//! due is kept, in nanoseconds, as a whole number of quanta (the counter) less what was used of the next
//! one. Both sides are integers below 2¹²⁷. So the inequality is decided as rational numbers would
//! decide it, whatever the shares, with partial quanta, and however long the queue has been running.
//!
//! The paper's rules for arrivals become rules for the due: VFT = QVT + Q / S is a due of
//! S · Σdue / T, the larger of two VFTs is the smaller of two dues, and the counter that goes with
//! it is the paper's, rounded up.
//!
//! # Where this differs from the paper
//!
//! * When a client leaves that is ahead or behind, QVT becomes that of those that stay; the paper leaves
//!   it alone. Otherwise the lead of a client that has gone would stay with the others until the cycle's end
//!   (Stoica and Abdel-Wahab, Earliest Eligible Virtual Deadline First, 1995, correct virtual time in
//!   the same way).
//! * When a counter is restricted by its neighbours', the virtual time follows it.
//! * The quantum is charged when it is given, not when it has been used, and what was not used is given back.
//!   So a decision can be taken while the one before is still running. For a client that arrives meanwhile,
//!   QVT is as the paper has it: of a quantum that is given, it counts what has been used by the time of the
//!   arrival.
//!
//! # Slices that are not used up
//!
//! Time is charged to the nanosecond. Used parts of quanta add up, and the counter goes down when they make a
//! whole one. So a client that always blocks just before the end of its quantum has no more time than one
//! that does not. A client is selected again by the next pick if it has to give way before a whole quantum is
//! used, or if the decision was given back so that nothing is used. A client that yields gives up the rest of
//! its quantum.
//!
//! # Coming and going
//!
//! A client that arrives is due what the others are, in proportion. A client that has been away in the same
//! cycle is due no more than it had left, and a part of a quantum that it used too much is not forgotten in
//! later cycles either. A client that arrives in an empty queue begins a cycle. A new share is a departure
//! and an arrival; it cuts what is due in the current cycle at once, and adds to it from the next cycle on.
//!
//! # Several processors
//!
//! A client whose share is more than one processor can give has a processor alone, outside the queue; the
//! queue serves the others (see `alone.rs`). A client that runs keeps its place and is passed over. When the
//! first client has had its due, passes go on among the clients that have not. The next cycle begins when
//! those run: in that cycle they make up for what they are late, out of turn. Over random shares on 2 to 16
//! processors each client stays within its share of quanta, and two, of its feasible part
//! (`tests/all/vtrr_processors.rs`; no bound is proved). The decision that begins a cycle takes a step for each
//! client, and one near its end may pass all clients in search of one that is still due something.

mod alone;
#[cfg(test)]
mod cost;
mod departure;
mod group;
mod insertion;
mod queue;
mod ranged;
mod slot;
mod store;

use alloc::vec;
use alloc::vec::Vec;

use alone::{LoneClient, LoneClients};
use departure::Departure;
use insertion::Insertion;
use queue::Queue;
use slot::Slot;
use store::{SlotPlace, Store};

use crate::progress::Progress;
use crate::roster::Roster;
use crate::{ClientId, Decision, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

pub use group::GroupVtrr;
pub use queue::{Reset, VirtualTime};
pub(crate) use slot::MAX_QUANTUM_NS;

/// The virtual-time round-robin policy.
pub struct Vtrr {
    name: &'static str,
    /// A client in the queue is ready here, whether it runs or not: its slot has whether it runs.
    roster: Roster,
    store: Store,
    queue: Queue,
    alone: LoneClients,
    insertion: Insertion,
    /// What clients had when they left the queue.
    departures: Vec<Departure>,
    progress: Progress,
    /// The place of the client of the last decision, unless the queue has changed.
    recent: SlotPlace,
}

impl Vtrr {
    /// A policy without clients; a new client finds its place by a walk through the queue.
    pub fn new(setup: &Setup) -> Vtrr {
        let queue = Queue::new(0, setup);
        let quantum_ns = queue.quantum_ns;
        Vtrr {
            name: "vtrr",
            roster: Roster::new(setup),
            store: Store::new(setup.clients, 1),
            queue,
            alone: LoneClients::new(setup.processors),
            insertion: Insertion::neighbours(),
            departures: vec![Departure::NEVER; setup.clients as usize],
            progress: Progress::new(setup, quantum_ns),
            recent: SlotPlace::NOWHERE,
        }
    }

    /// A policy without clients. A new client whose share is no larger than `largest` finds its place in
    /// constant time by an array of all shares, four bytes each.
    pub fn ranged(setup: &Setup, largest: Share) -> Vtrr {
        Vtrr { name: "vtrr-ranged", insertion: Insertion::ranged(largest.get()), ..Vtrr::new(setup) }
    }

    /// Resets counters in another way.
    pub fn with_reset(mut self, reset: Reset) -> Vtrr {
        self.queue.reset = reset;
        self
    }

    /// The time counter of a client in the queue: the quanta that it is due in this cycle.
    pub fn counter(&self, client: ClientId) -> Option<u32> {
        let slot = self.store.get(self.store.find(client.into())?)?;
        Some(self.queue.counter(slot))
    }

    /// The clients in the queue, running ones included, in its order, with their counters.
    pub fn run_queue(&self) -> impl Iterator<Item = (ClientId, u32)> {
        self.queue.slots(&self.store).map(|slot| (slot.entity.client(), self.queue.counter(slot)))
    }

    /// QVT, the virtual time of the queue; `None` when the queue is empty. For tests of the dynamics, beside
    /// a model.
    pub fn queue_virtual_time(&self) -> Option<VirtualTime> {
        self.queue.virtual_time()
    }

    /// VFT, the virtual time at which a client in the queue will have had one more quantum.
    pub fn virtual_finishing_time(&self, client: ClientId) -> Option<VirtualTime> {
        let slot = self.store.get(self.store.find(client.into())?)?;
        Some(self.queue.virtual_finishing_time(slot))
    }

    /// The number of the scheduling cycle. A cycle ends when no client is due anything, or the queue is
    /// empty.
    pub fn cycle(&self) -> u64 {
        self.queue.cycle()
    }

    fn enter(&mut self, client: ClientId, busy: bool, now: Nanoseconds) {
        let share = self.roster.share(client).get();
        self.insert(LoneClient { entity: client.into(), share, busy }, now);
        self.balance(now);
    }

    /// Takes a client out of the queue, or off its processor; answers whether it ran.
    fn leave(&mut self, client: ClientId, now: Nanoseconds) -> Option<bool> {
        let busy = match self.store.find(client.into()) {
            Some(place) => self.withdraw(place).map(|member| member.busy),
            None => self.alone.find(client.into()).map(|member| member.busy),
        };
        self.alone.remove(client.into());
        // The sum of shares has changed, and with it which shares are more than one processor.
        self.balance(now);
        busy
    }

    fn insert(&mut self, LoneClient { entity, share, busy }: LoneClient, now: Nanoseconds) {
        let departure = self.departures[entity.index()];
        let unused_ns = self.unused_ns(now);
        let member = (entity, share);
        let place = self.queue.insert(&mut self.store, &mut self.insertion, member, departure, unused_ns);
        if let Some(slot) = self.store.get_mut(place) {
            // A client that was running alone goes on running in the queue.
            slot.busy = busy;
        }
    }

    /// What the clients that run in the queue have been charged and not used yet.
    fn unused_ns(&self, now: Nanoseconds) -> Nanoseconds {
        // Clients that run alone are charged nothing in the queue.
        let in_queue =
            self.progress.unused(now).filter(|&(client, _)| self.store.find(client.into()).is_some());
        in_queue.map(|(_, unused_ns)| unused_ns).sum()
    }

    fn withdraw(&mut self, place: SlotPlace) -> Option<LoneClient> {
        let Slot { entity, share, busy, .. } = *self.store.get(place)?;
        self.departures[entity.index()] = self.queue.remove(&mut self.store, &mut self.insertion, place);
        Some(LoneClient { entity, share, busy })
    }

    /// Gives processors to the clients that need one alone, after a client came or left.
    fn balance(&mut self, now: Nanoseconds) {
        // First back into the queue what fits there: that makes the sum larger, and fewer shares too large.
        while let Some(member) = self.alone.pop_feasible(self.queue.total()) {
            self.insert(member, now);
        }
        while let Some(head) = self.store.get(self.queue.head())
            && self.alone.takes(head.share, self.queue.total())
        {
            if let Some(member) = self.withdraw(self.queue.head()) {
                self.alone.push(member);
            }
        }
    }

    fn select(&mut self) -> Option<ClientId> {
        // Clients alone first: each has a processor, and they are fewer than the processors.
        if let Some(member) = self.alone.first_idle() {
            member.busy = true;
            return Some(member.entity.client());
        }
        let place = self.queue.select(&mut self.store)?;
        let slot = self.store.get_mut(place)?;
        slot.busy = true;
        self.recent = place;
        Some(slot.entity.client())
    }

    /// Stops a client that runs alone; `false` if there is no such client.
    fn stops_alone(&mut self, client: ClientId) -> bool {
        let running = self.alone.find(client.into()).filter(|member| member.busy);
        running.map(|member| member.busy = false).is_some()
    }

    /// Stops a client that runs on one of the queue's processors; `false` if there is no such client.
    fn stops(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop) -> bool {
        let Some(place) = self.store.busy(client.into(), self.recent) else { return false };
        // A client that yields gives up the rest of its quantum. Otherwise it could hold up the cycle's end,
        // and with it all clients that have had their due, by yielding again and again.
        let least_ns = if stop == Stop::Yielded { self.queue.quantum_ns } else { Nanoseconds::ZERO };
        self.queue.settle(&mut self.store, place, ran_ns.max(least_ns));
        if let Some(slot) = self.store.get_mut(place) {
            slot.busy = false;
        }
        // After `settle`: only the settled counter shows whether the quantum is over.
        if stop == Stop::Preempted {
            self.queue.stand_before(&self.store, place);
        }
        true
    }
}

impl Policy for Vtrr {
    fn name(&self) -> &'static str {
        self.name
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.departures[client.index()] = Departure::NEVER;
        }
    }

    fn remove(&mut self, client: ClientId, now: Nanoseconds) {
        self.roster.remove(client);
        // Before `leave`: what an absent client has not used must not count for the others' arrivals.
        self.progress.leave(client, now);
        self.leave(client, now);
    }

    fn set_share(&mut self, client: ClientId, share: Share, now: Nanoseconds) {
        self.roster.set_share(client, share);
        if let Some(busy) = self.leave(client, now) {
            self.enter(client, busy, now);
        }
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            self.enter(client, false, now);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        let client = self.select()?;
        self.progress.enter(processor, client, now);
        Some(Decision::by_share(client, self.queue.quantum_ns))
    }

    /// No client displaces another one.
    fn keeps(&self, _processor: ProcessorId) -> bool {
        true
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        let stopped = self.stops(client, ran_ns, stop) || self.stops_alone(client);
        if !stopped {
            return;
        }
        self.progress.leave(client, now);
        // To the roster a client in the queue is ready; it blocks only from running.
        if stop == Stop::Blocked {
            self.roster.run(client);
            self.roster.stop(client, stop);
            self.leave(client, now);
        }
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("cycles", self.queue.cycle());
        each("insertions beside a neighbour", self.insertion.beside);
        each("insertions after a search", self.insertion.searched);
    }
}
