//! One VTRR run queue: selection, time counters, virtual times, the scheduling cycle (VTRR paper, §3.1).
//!
//! The arithmetic, and where it differs from the paper's, is in the documentation of [`vtrr`](super).

use alloc::vec::Vec;

use super::departure::Departure;
use super::insertion::Insertion;
use super::slot::{Entity, Key, MAX_QUANTUM_NS, Slot};
use super::store::{QueueLine, SlotPlace, Store};
use crate::{Nanoseconds, Setup};

/// When the counters of a new cycle are set. The schedule is the same, with one exception. A client may have
/// more than one quantum left at the end of a cycle (only with several processors, or decisions taken ahead).
/// What it forfeits then leaves the queue's virtual time when its counter is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reset {
    /// Each counter when the cycle's first pass comes to it (VTRR paper, §3.3): no decision takes longer than
    /// another.
    #[default]
    Incremental,
    /// All at the beginning: every decision is equally cheap, except one in a cycle.
    AtOnce,
}

/// Virtual time in scheduling cycles: an exact fraction, not reduced. A cycle is the paper's 1, and a quantum
/// of a client of share S is Q / S. Zero is the beginning of the current cycle.
#[derive(Clone, Copy, Debug)]
pub struct VirtualTime {
    /// Below 2¹⁰⁵ in size.
    pub numerator: i128,
    /// From 1 to below 2¹⁰⁴.
    pub denominator: i128,
}

/// The current client: the client that was selected last.
#[derive(Clone, Copy)]
struct CurrentClient {
    key: Key,
    /// Its counter after the selection, with a whole quantum charged.
    counter: u32,
}

/// A run queue. The cursor of its line is the first slot behind the current client.
pub(super) struct Queue {
    line: QueueLine,
    current: CurrentClient,
    processors: u16,
    pub(super) quantum_ns: Nanoseconds,
    pub(super) reset: Reset,
    /// The number of the cycle, from 1.
    cycle: u64,
    /// The sum of what is due to all clients in this cycle.
    due_ns: i128,
    /// The sum of the shares.
    total: u64,
    /// Clients that have something left of an earlier cycle, because they ran when it ended.
    late: Vec<Entity>,
}

impl Queue {
    pub(super) fn new(number: u32, setup: &Setup) -> Queue {
        Queue {
            line: QueueLine::new(number),
            current: CurrentClient { key: Key::LAST, counter: 0 },
            processors: setup.processors.max(1),
            quantum_ns: setup.quantum_ns.clamp(Nanoseconds::new(1), MAX_QUANTUM_NS),
            reset: Reset::default(),
            cycle: 1,
            due_ns: 0,
            total: 0,
            // Clients that run, and as many decisions taken ahead.
            late: Vec::with_capacity(2 * usize::from(setup.processors)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    pub(super) fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Selects the client that runs next and charges it a quantum; `None` when all are busy.
    pub(super) fn select(&mut self, store: &mut Store) -> Option<SlotPlace> {
        if let Some(place) = self.late(store) {
            // Out of turn: neither the current client nor the cursor changes.
            self.charge(store, place)?;
            return Some(place);
        }
        let place = match self.behind_current(store) {
            Some(place) => place,
            None => self.at_the_head(store)?,
        };
        self.current = self.charge(store, place)?;
        // The pass goes on behind the client that was charged.
        self.line.cursor = store.next(place);
        Some(place)
    }

    fn charge(&mut self, store: &mut Store, place: SlotPlace) -> Option<CurrentClient> {
        // The whole quantum, before it is used: a decision ahead, or for another processor, counts it.
        let slot = store.get_mut(place)?;
        slot.counter = slot.counter.saturating_sub(1);
        self.due_ns -= i128::from(self.quantum_ns);
        Some(CurrentClient { key: slot.key(), counter: slot.counter })
    }

    /// A client that still has to make up for an earlier cycle. It runs out of turn, and the pass goes on
    /// where it was.
    #[inline]
    fn late(&mut self, store: &mut Store) -> Option<SlotPlace> {
        let mut index = 0;
        while let Some(&entity) = self.late.get(index) {
            match store.find(entity).and_then(|place| Some((place, self.refreshed(store, place)?))) {
                // A counter above the share: what is left over is of an earlier cycle.
                Some((place, slot)) if slot.counter > slot.share && !slot.busy => return Some(place),
                // It runs already; it may have more to make up for afterwards.
                Some((_, slot)) if slot.counter > slot.share => index += 1,
                _ => drop(self.late.swap_remove(index)),
            }
        }
        None
    }

    /// The next client, if it has to run because of the time-counter invariant, or if the VFT inequality
    /// holds for it.
    fn behind_current(&mut self, store: &mut Store) -> Option<SlotPlace> {
        let place = self.first_idle(store, self.line.cursor)?;
        let slot = self.refreshed(store, place)?;
        // The invariant: no counter behind the current client may stay larger than the current one (§3.1).
        (slot.counter > self.current.counter || self.is_behind(&slot)).then_some(place)
    }

    /// The first client, in a new cycle if all have had what they were due.
    ///
    /// On one processor the time-counter invariant guarantees that no client is due anything when the first
    /// is not. Where clients run at the same time, the first may have had its due before the others. Then
    /// passes go on among those.
    fn at_the_head(&mut self, store: &mut Store) -> Option<SlotPlace> {
        let place = self.first_idle(store, self.line.head())?;
        if self.refreshed(store, place)?.counter > 0 {
            return Some(place);
        }
        if self.processors > 1 {
            let found = self.first_due(store, self.line.cursor);
            // From the cursor to the end, then from the head: the pass goes round once.
            if let Some(due) = found.or_else(|| self.first_due(store, place)) {
                return Some(due);
            }
        }
        // Before the counters are reset: afterwards what is left over cannot be told from the new cycle's.
        self.note_late(store);
        self.begin_cycle(store);
        self.refreshed(store, place)?;
        Some(place)
    }

    /// At a cycle's end, the clients that are still due something run: they are no more than the processors.
    fn note_late(&mut self, store: &Store) {
        if self.processors == 1 {
            return;
        }
        for slot in self.line.slots(store).filter(|slot| slot.counter > 0) {
            // Never beyond the capacity: a decision allocates nothing.
            if self.late.len() < self.late.capacity() && !self.late.contains(&slot.entity) {
                self.late.push(slot.entity);
            }
        }
    }

    /// From `place` on, the first client that is not busy and is due something.
    fn first_due(&mut self, store: &mut Store, mut place: SlotPlace) -> Option<SlotPlace> {
        loop {
            let slot = self.refreshed(store, place)?;
            if !slot.busy && slot.counter > 0 {
                return Some(place);
            }
            place = store.next(place);
        }
    }

    /// From `place` on, the first client that is not busy. At most one is busy for each processor and each
    /// decision taken ahead.
    fn first_idle(&self, store: &Store, mut place: SlotPlace) -> Option<SlotPlace> {
        while store.get(place)?.busy {
            place = store.next(place);
        }
        Some(place)
    }

    /// The VFT inequality: with the next quantum, the queue's virtual time overtakes this client's.
    fn is_behind(&self, slot: &Slot) -> bool {
        let quantum_ns = self.quantum_ns;
        let queue_due_ns = self.due_ns - i128::from(quantum_ns);
        // C · T > S · (ΣC − 1), both sides times the quantum. A client without a quantum left has had its
        // due.
        slot.counter > 0
            && i128::from(slot.due_ns(quantum_ns)) * i128::from(self.total)
                > i128::from(slot.share) * queue_due_ns
    }

    fn begin_cycle(&mut self, store: &mut Store) {
        self.cycle += 1;
        // The new cycle's due of all, at once; each counter follows when its slot is refreshed.
        self.due_ns += i128::from(self.total) * i128::from(self.quantum_ns);
        if self.reset == Reset::AtOnce {
            let mut place = self.line.head();
            while self.refreshed(store, place).is_some() {
                place = store.next(place);
            }
        }
    }

    /// A slot, with its counter reset if that is of an earlier cycle.
    #[inline]
    fn refreshed(&mut self, store: &mut Store, place: SlotPlace) -> Option<Slot> {
        let slot = store.get_mut(place)?;
        // Every cycle comes to each slot that is due something, so the low 32 bits of its number suffice.
        if slot.cycle != self.cycle as u32 {
            let forfeit = slot.reset(self.cycle as u32);
            // The sum counted the forfeited quanta as due.
            self.due_ns -= i128::from(forfeit) * i128::from(self.quantum_ns);
        }
        Some(*slot)
    }

    /// Replaces the quantum that was charged on selection by what was really used.
    ///
    /// The time-counter invariant goes on as if it had been a whole quantum: those behind, which it obliges
    /// to run next, do so.
    #[inline]
    pub(super) fn settle(&mut self, store: &mut Store, place: SlotPlace, ran_ns: Nanoseconds) {
        // As a rule the whole quantum was used: then the charge was right, and the slot is not touched.
        if ran_ns != self.quantum_ns && self.refreshed(store, place).is_some() {
            self.settle_part(store, place, ran_ns);
        }
    }

    fn settle_part(&mut self, store: &mut Store, place: SlotPlace, ran_ns: Nanoseconds) {
        let quantum_ns = self.quantum_ns;
        let Some(slot) = store.get_mut(place) else { return };
        let before_ns = slot.due_ns(quantum_ns);
        // The charge of the selection goes back before the real one: `used_ns` may then cross a whole
        // quantum.
        slot.counter += 1;
        slot.charge(ran_ns, quantum_ns);
        self.due_ns += i128::from(slot.due_ns(quantum_ns) - before_ns);
    }

    /// After a client had to give way, and was settled: if its quantum is not over, and no other client has
    /// been selected since, it is selected next.
    pub(super) fn stand_before(&mut self, store: &Store, place: SlotPlace) {
        let CurrentClient { key, counter } = self.current;
        if store.get(place).is_none_or(|slot| slot.key() != key || slot.counter <= counter) {
            return;
        }
        // The client before it becomes the current one, with a counter of 0: any quantum left exceeds that.
        let before = store.previous(place).and_then(|before| store.get(before));
        self.current = CurrentClient { key: before.map_or(Key::FIRST, Slot::key), counter: 0 };
        self.line.cursor = place;
    }

    /// Puts an entity into the queue, as one that was away since its departure, and answers its place.
    /// `unused_ns`: what running members have been charged and not used yet.
    pub(super) fn insert(
        &mut self,
        store: &mut Store,
        insertion: &mut Insertion,
        (entity, share): (Entity, u32),
        departure: Departure,
        unused_ns: Nanoseconds,
    ) -> SlotPlace {
        if self.is_empty() {
            self.begin_alone();
        }
        let mut slot = Slot { entity, share, cycle: self.cycle as u32, ..Slot::default() };
        let stayed_ns = self.due_if_stayed_ns(share, departure);
        slot.set_due_ns(self.due_on_arrival_ns(share, stayed_ns, unused_ns), self.quantum_ns);
        let start = insertion.start(store, &self.line, slot.key(), departure);
        let place = store.insert(&mut self.line, start, slot);
        insertion.inserted(store, place);
        // Right behind the current client: the pass has not gone by yet, so the new client is next.
        if self.current.key < slot.key() && store.next(place) == self.line.cursor {
            self.line.cursor = place;
        }
        self.admit(store, place, stayed_ns);
        place
    }

    /// No member is there to be compared with: a new cycle begins.
    fn begin_alone(&mut self) {
        self.cycle += 1;
        self.current = CurrentClient { key: Key::LAST, counter: 0 };
    }

    /// What is due to an entity that arrives now: in proportion to what is due to the others, and no more
    /// than it would have if it had stayed (VTRR paper, §3.2). QVT is that of the moment, so quanta count as
    /// far as they have been used.
    fn due_on_arrival_ns(&self, share: u32, stayed_ns: i128, unused_ns: Nanoseconds) -> i64 {
        let share = i128::from(share);
        let whole_ns = share * i128::from(self.quantum_ns);
        // Charges for time that is not used yet are still due at this moment.
        let due_ns = self.due_ns + i128::from(unused_ns);
        let proportional_ns =
            if self.total == 0 { whole_ns } else { (share * due_ns).max(0) / i128::from(self.total) };
        // At most a cycle's worth, and that fits: a share of 2²⁰ and a quantum of 2⁴⁰ ns (`MAX_QUANTUM_NS`).
        proportional_ns.min(stayed_ns).min(whole_ns) as i64
    }

    /// What would be due to an entity if it had stayed and not run.
    fn due_if_stayed_ns(&self, share: u32, departure: Departure) -> i128 {
        let share = i128::from(share);
        // Each cycle since would have brought its whole share.
        let cycles = i128::from(self.cycle.saturating_sub(departure.cycle));
        departure.due_for_ns(share) + cycles.saturating_mul(share * i128::from(self.quantum_ns))
    }

    /// Keeps the time-counter invariant: the counter of an entity that has arrived is no larger than that of
    /// the one before it, and no smaller than that of the one behind it. This completes the arrival,
    /// and counts it in the sums.
    fn admit(&mut self, store: &mut Store, place: SlotPlace, stayed_ns: i128) {
        // Both refresh a neighbour: its counter has to be of this cycle to be compared with.
        let (smallest, largest) = (self.counter_behind(store, place), self.counter_before(store, place));
        let Some(slot) = store.get_mut(place) else { return };
        let counter = slot.counter.min(largest).max(smallest);
        if counter > slot.counter {
            // A counter that is raised brings no more than staying would have: otherwise a client would gain
            // by blocking in the midst of a quantum and waking at once.
            slot.raise(counter, stayed_ns, self.quantum_ns);
        }
        slot.counter = counter;
        self.due_ns += i128::from(slot.due_ns(self.quantum_ns));
        self.total += u64::from(slot.share);
    }

    fn counter_before(&mut self, store: &mut Store, place: SlotPlace) -> u32 {
        let before = store.previous(place).and_then(|before| self.refreshed(store, before));
        before.map_or(u32::MAX, |slot| slot.counter)
    }

    /// An entity behind the current client may have a counter larger by one, because it runs next; it
    /// must not lend that one to a client that comes back before it.
    fn counter_behind(&mut self, store: &mut Store, place: SlotPlace) -> u32 {
        let behind = store.next(place);
        let Some(slot) = self.refreshed(store, behind) else { return 0 };
        let runs_next = behind == self.line.cursor && slot.counter > self.current.counter;
        slot.counter - u32::from(runs_next)
    }

    /// Takes an entity out of the queue. The answer is what it needs when it comes back.
    pub(super) fn remove(
        &mut self,
        store: &mut Store,
        insertion: &mut Insertion,
        place: SlotPlace,
    ) -> Departure {
        // Refreshed, so that what is due is of this cycle.
        let Some(slot) = self.refreshed(store, place) else { return Departure::NEVER };
        let before = store.previous(place).and_then(|before| store.get(before)).copied();
        let behind = store.get(store.next(place)).map_or(Entity::MAX, |slot| slot.entity);
        insertion.leaves(&slot, before.as_ref());
        // It makes up for nothing in the queue that it may be in next.
        self.late.retain(|&late| late != slot.entity);
        store.remove(&mut self.line, place);
        self.due_ns -= i128::from(slot.due_ns(self.quantum_ns));
        self.total -= u64::from(slot.share);
        Departure {
            cycle: self.cycle,
            due_ns: slot.due_ns(self.quantum_ns),
            share: slot.share,
            before: before.map_or(Entity::MAX, |slot| slot.entity),
            behind,
        }
    }

    /// The sum of the shares of all entities in the queue.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The first place of the queue: the largest share.
    pub(super) fn head(&self) -> SlotPlace {
        self.line.head()
    }

    /// A slot's counter as the next decision would see it.
    pub(super) fn counter(&self, slot: &Slot) -> u32 {
        let mut slot = *slot;
        if slot.cycle != self.cycle as u32 {
            slot.reset(self.cycle as u32);
        }
        slot.counter
    }

    /// QVT, in cycles since this cycle began; `None` when the queue is empty.
    pub(super) fn virtual_time(&self) -> Option<VirtualTime> {
        let whole = i128::from(self.total) * i128::from(self.quantum_ns);
        (whole > 0).then(|| VirtualTime { numerator: whole - self.due_ns, denominator: whole })
    }

    /// A slot's VFT, in cycles since this cycle began.
    pub(super) fn virtual_finishing_time(&self, slot: &Slot) -> VirtualTime {
        let (share, quantum) = (i128::from(slot.share), i128::from(self.quantum_ns));
        let due_ns = i128::from(slot.due_ns(self.quantum_ns))
            + (i128::from(self.counter(slot)) - i128::from(slot.counter)) * quantum;
        VirtualTime { numerator: (share + 1) * quantum - due_ns, denominator: share * quantum }
    }

    /// The slots in the order of the queue.
    pub(super) fn slots<'a>(&'a self, store: &'a Store) -> impl Iterator<Item = &'a Slot> {
        self.line.slots(store)
    }
}
