//! Sorted queues in chunks: memory is walked in the order in which the clients run.
//!
//! A list linked through client numbers would miss the cache at every step once there are more clients than
//! cache lines. Here the entities of a queue lie in chunks of [`CHUNK`] slots, sorted inside and linked to
//! each other. An insertion or a removal moves the slots of one chunk only. Which chunk an entity is in is
//! stored beside the slots, for insertion and removal; a decision does not look there.
//!
//! Several queues share one store; an entity is in one queue at most.

use alloc::vec;
use alloc::vec::Vec;

use super::slot::{Entity, Key, Slot};

/// Slots in a chunk, two thirds of them in use as a rule. More slots make a long queue's walk smoother (one
/// jump in memory for each chunk); fewer make arrivals and departures cheaper (half a chunk is moved).
pub(super) const CHUNK: usize = 64;

/// Neighbouring chunks that together hold no more than this are joined. Less than a whole chunk, so
/// that one insertion does not split it again.
const MERGE: u32 = CHUNK as u32 * 3 / 4;

/// Up to this number of slots, 1 MiB, stay in a processor's own caches: nothing need be fetched ahead.
const NEAR: usize = (1 << 20) / size_of::<Slot>();

const NONE: u32 = u32::MAX;

/// A place in a queue: a slot, or the end behind the last slot of the last chunk. Any change to the
/// queue may move what lies there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotPlace {
    chunk: u32,
    slot: u32,
}

impl SlotPlace {
    /// The only place in an empty queue.
    pub(super) const NOWHERE: SlotPlace = SlotPlace { chunk: NONE, slot: 0 };

    fn index(self) -> usize {
        self.chunk as usize * CHUNK + self.slot as usize
    }
}

#[derive(Clone, Copy)]
struct Header {
    next: u32,
    previous: u32,
    len: u32,
    queue: u32,
    /// The key of the first slot.
    first: Key,
}

const FREE: Header = Header { next: NONE, previous: NONE, len: 0, queue: NONE, first: Key::LAST };

/// The ends of one queue, and a cursor that stays with its slot whatever is put in or taken out. When
/// the slot itself is taken out, the cursor moves to the slot behind it.
pub(super) struct QueueLine {
    queue: u32,
    head: u32,
    tail: u32,
    pub(super) cursor: SlotPlace,
}

impl QueueLine {
    /// An empty queue; `queue` distinguishes it from the others in the store.
    pub(super) fn new(queue: u32) -> QueueLine {
        QueueLine { queue, head: NONE, tail: NONE, cursor: SlotPlace::NOWHERE }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head == NONE
    }

    pub(super) fn head(&self) -> SlotPlace {
        SlotPlace { chunk: self.head, slot: 0 }
    }

    /// The slots in order.
    pub(super) fn slots<'a>(&self, store: &'a Store) -> impl Iterator<Item = &'a Slot> + use<'a> {
        let mut place = self.head();
        core::iter::from_fn(move || {
            let slot = store.get(place)?;
            place = store.next(place);
            Some(slot)
        })
    }
}

/// The memory of all queues.
pub(super) struct Store {
    headers: Vec<Header>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The chunk that each entity is in.
    homes: Vec<u32>,
    /// How many slots were looked at, for tests that count.
    #[cfg(test)]
    pub(super) looks: core::cell::Cell<u64>,
}

impl Store {
    /// Room for that number of entities in that number of queues.
    pub(super) fn new(entities: u32, queues: u32) -> Store {
        // Two neighbours in a queue hold more than half a chunk together: the two that a split leaves
        // beside each other do, and a removal joins neighbours that hold no more than MERGE.
        let chunks = (entities as usize * 4).div_ceil(CHUNK) + queues as usize + 1;
        Store {
            headers: Vec::with_capacity(chunks),
            slots: Vec::with_capacity(chunks * CHUNK),
            free: Vec::with_capacity(chunks),
            homes: vec![NONE; entities as usize],
            #[cfg(test)]
            looks: core::cell::Cell::default(),
        }
    }

    #[inline]
    pub(super) fn get(&self, place: SlotPlace) -> Option<&Slot> {
        #[cfg(test)]
        self.looks.update(|looks| looks + 1);
        let header = self.headers.get(place.chunk as usize)?;
        if place.slot < header.len { self.slots.get(place.index()) } else { None }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: SlotPlace) -> Option<&mut Slot> {
        #[cfg(test)]
        self.looks.update(|looks| looks + 1);
        let header = self.headers.get(place.chunk as usize)?;
        if place.slot < header.len { self.slots.get_mut(place.index()) } else { None }
    }

    /// The place behind a slot's place.
    #[inline]
    pub(super) fn next(&self, place: SlotPlace) -> SlotPlace {
        let header = &self.headers[place.chunk as usize];
        // At the end of the last chunk the place behind is the end of the queue.
        if place.slot + 1 < header.len || header.next == NONE {
            SlotPlace { slot: place.slot + 1, ..place }
        } else {
            if self.slots.len() > NEAR {
                self.fetch_behind(header.next);
            }
            SlotPlace { chunk: header.next, slot: 0 }
        }
    }

    /// Brings the chunk behind a chunk near while that one is walked through. Chunks lie anywhere in memory,
    /// so no processor can predict which is next.
    #[inline(never)]
    fn fetch_behind(&self, chunk: u32) {
        let next = self.headers[chunk as usize].next as usize;
        let Some(header) = self.headers.get(next) else { return };
        prefetch(header);
        for slot in self.slots[next * CHUNK..(next + 1) * CHUNK].iter().step_by(64 / size_of::<Slot>()) {
            // One slot in each cache line.
            prefetch(slot);
        }
    }

    /// The place before this one; `None` at the head.
    pub(super) fn previous(&self, place: SlotPlace) -> Option<SlotPlace> {
        if place.slot > 0 {
            return Some(SlotPlace { slot: place.slot - 1, ..place });
        }
        let chunk = self.headers.get(place.chunk as usize)?.previous;
        (chunk != NONE).then(|| SlotPlace { chunk, slot: self.headers[chunk as usize].len - 1 })
    }

    /// The place of an entity; `None` when it is in no queue.
    pub(super) fn find(&self, entity: Entity) -> Option<SlotPlace> {
        let chunk = self.home(entity)?;
        let first = chunk as usize * CHUNK;
        // Its number is not the order of the slots, so the chunk is searched from one end to the other.
        let slots = &self.slots[first..first + self.headers[chunk as usize].len as usize];
        #[cfg(test)]
        self.looks.update(|looks| looks + slots.len() as u64);
        let slot = slots.iter().position(|slot| slot.entity == entity)?;
        Some(SlotPlace { chunk, slot: slot as u32 })
    }

    /// The place of an entity that is busy. As a rule it is `recent`, that of the last decision, and needs no
    /// search. The queue may have changed since; so the place is checked.
    pub(super) fn busy(&self, entity: Entity, recent: SlotPlace) -> Option<SlotPlace> {
        let is_busy =
            |&place: &SlotPlace| self.get(place).is_some_and(|slot| slot.entity == entity && slot.busy);
        Some(recent).filter(is_busy).or_else(|| self.find(entity).filter(is_busy))
    }

    /// The chunk that an entity is in: a start for [`seek`](Store::seek).
    pub(super) fn home(&self, entity: Entity) -> Option<u32> {
        self.homes.get(entity.index()).copied().filter(|&chunk| chunk != NONE)
    }

    /// An entity's chunk and key, if it is in this queue.
    pub(super) fn chunk_and_key(&self, line: &QueueLine, entity: Entity) -> Option<(u32, Key)> {
        let place = self.find(entity)?;
        let here = self.headers[place.chunk as usize].queue == line.queue;
        self.get(place).filter(|_| here).map(|slot| (place.chunk, slot.key()))
    }

    /// The place where `key` belongs, found by walking from `start` (else the head) over whole chunks. Any
    /// start is right; one nearby is fast. The queue is not empty.
    fn seek(&self, line: &QueueLine, start: Option<u32>, key: Key) -> SlotPlace {
        let mut chunk = start.unwrap_or(line.head);
        // Back until a chunk begins before the key, then forth until the next one begins behind it.
        while self.headers[chunk as usize].first > key && chunk != line.head {
            chunk = self.headers[chunk as usize].previous;
        }
        loop {
            let next = self.headers[chunk as usize].next;
            if next == NONE || self.headers[next as usize].first > key {
                break;
            }
            chunk = next;
        }
        SlotPlace { chunk, slot: self.rank(chunk, key) }
    }

    /// The number of slots of a chunk that come before `key`.
    fn rank(&self, chunk: u32, key: Key) -> u32 {
        let first = chunk as usize * CHUNK;
        let slots = &self.slots[first..first + self.headers[chunk as usize].len as usize];
        slots.partition_point(|slot| slot.key() < key) as u32
    }

    /// A chunk that is before `key` and not far from it, when nothing is known: the nearest of a few chunks
    /// that lie spread over the memory. With c chunks, about √c are looked at and about √c are left to
    /// walk (Mücke, Saias, Zhu: Fast randomized point location without preprocessing, 1996).
    pub(super) fn sample(&self, line: &QueueLine, key: Key) -> Option<u32> {
        let chunks = self.headers.len();
        let stride = chunks.isqrt().max(1);
        let nearest = (0..chunks).step_by(stride).filter(|&chunk| {
            // Free chunks are in no queue, so this passes over them, too.
            let header = &self.headers[chunk];
            header.queue == line.queue && header.first <= key
        });
        nearest.max_by_key(|&chunk| self.headers[chunk].first).map(|chunk| chunk as u32)
    }

    /// Puts a slot where it belongs, seeking from the chunk `start`, and answers its place.
    pub(super) fn insert(&mut self, line: &mut QueueLine, start: Option<u32>, slot: Slot) -> SlotPlace {
        if line.is_empty() {
            self.begin(line);
        }
        let mut place = self.seek(line, start, slot.key());
        if self.headers[place.chunk as usize].len as usize == CHUNK {
            self.split(line, place.chunk);
            // The place may now be in the new half.
            place = self.seek(line, Some(place.chunk), slot.key());
        }
        self.open(line, place);
        self.slots[place.index()] = slot;
        self.homes[slot.entity.index()] = place.chunk;
        self.note_first(place.chunk);
        place
    }

    /// Gives an empty queue its first chunk.
    fn begin(&mut self, line: &mut QueueLine) {
        let chunk = self.take_chunk(line.queue);
        line.head = chunk;
        line.tail = chunk;
        line.cursor = SlotPlace { chunk, slot: 0 };
    }

    /// Makes room at a place of a chunk that is not full.
    fn open(&mut self, line: &mut QueueLine, place: SlotPlace) {
        let first = place.chunk as usize * CHUNK;
        let header = &mut self.headers[place.chunk as usize];
        let end = first + header.len as usize;
        self.slots.copy_within(place.index()..end, place.index() + 1);
        header.len += 1;
        // The cursor stays with its slot, which has moved on by one.
        if line.cursor.chunk == place.chunk && line.cursor.slot >= place.slot {
            line.cursor.slot += 1;
        }
    }

    /// Takes out a slot.
    pub(super) fn remove(&mut self, line: &mut QueueLine, place: SlotPlace) -> Slot {
        let removed = self.slots[place.index()];
        self.homes[removed.entity.index()] = NONE;
        self.close(line, place);
        // The first slot may be another now, and walks over chunks compare these keys.
        self.note_first(place.chunk);
        self.shrink(line, place.chunk);
        removed
    }

    fn close(&mut self, line: &mut QueueLine, place: SlotPlace) {
        let header = &mut self.headers[place.chunk as usize];
        let end = place.chunk as usize * CHUNK + header.len as usize;
        self.slots.copy_within(place.index() + 1..end, place.index());
        header.len -= 1;
        let (len, next) = (header.len, header.next);
        if line.cursor.chunk == place.chunk && line.cursor.slot > place.slot {
            line.cursor.slot -= 1;
        }
        // A cursor at the end of a chunk would not meet the slot behind it, which is in the next chunk.
        if line.cursor == (SlotPlace { chunk: place.chunk, slot: len }) && next != NONE {
            line.cursor = SlotPlace { chunk: next, slot: 0 };
        }
    }

    /// Moves the second half of a full chunk to a new one behind it.
    fn split(&mut self, line: &mut QueueLine, chunk: u32) {
        let half = CHUNK as u32 / 2;
        let new = self.take_chunk(line.queue);
        self.link_behind(line, chunk, new);
        self.move_slots(line, SlotPlace { chunk, slot: half }, SlotPlace { chunk: new, slot: 0 });
    }

    /// After a removal: gives an empty chunk back, or joins a small one with a neighbour.
    fn shrink(&mut self, line: &mut QueueLine, chunk: u32) {
        let Header { next, previous, len, .. } = self.headers[chunk as usize];
        if self.fits(next, len) {
            self.join(line, chunk, next);
        } else if self.fits(previous, len) {
            self.join(line, previous, chunk);
        } else if len == 0 {
            // Alone in its queue, or beside chunks that are fuller than `MERGE`.
            self.give_chunk(line, chunk);
        }
    }

    /// Whether a chunk exists and can be joined with `len` more slots.
    fn fits(&self, chunk: u32, len: u32) -> bool {
        chunk != NONE && self.headers[chunk as usize].len + len <= MERGE
    }

    /// Moves all slots of a chunk to the end of the one before it.
    fn join(&mut self, line: &mut QueueLine, chunk: u32, next: u32) {
        let end = self.headers[chunk as usize].len;
        self.move_slots(line, SlotPlace { chunk: next, slot: 0 }, SlotPlace { chunk, slot: end });
        self.give_chunk(line, next);
    }

    /// Moves the slots from a place to its chunk's end to the end of another chunk, the cursor with them.
    fn move_slots(&mut self, line: &mut QueueLine, from: SlotPlace, to: SlotPlace) {
        let count = self.headers[from.chunk as usize].len - from.slot;
        self.slots.copy_within(from.index()..from.index() + count as usize, to.index());
        self.headers[from.chunk as usize].len -= count;
        self.headers[to.chunk as usize].len += count;
        for slot in &self.slots[to.index()..to.index() + count as usize] {
            self.homes[slot.entity.index()] = to.chunk;
        }
        if line.cursor.chunk == from.chunk && line.cursor.slot >= from.slot {
            line.cursor = SlotPlace { chunk: to.chunk, slot: line.cursor.slot - from.slot + to.slot };
        }
        self.note_first(to.chunk);
    }

    /// Notes the key of a chunk's first slot. An empty chunk keeps an old one until it is given back.
    fn note_first(&mut self, chunk: u32) {
        let first = &self.slots[chunk as usize * CHUNK];
        self.headers[chunk as usize].first = first.key();
    }

    fn link_behind(&mut self, line: &mut QueueLine, chunk: u32, new: u32) {
        let next = self.headers[chunk as usize].next;
        self.headers[new as usize].previous = chunk;
        self.headers[new as usize].next = next;
        self.headers[chunk as usize].next = new;
        match self.headers.get_mut(next as usize) {
            Some(header) => header.previous = new,
            None => line.tail = new,
        }
    }

    /// A chunk that was given back, or a new one. There is room for as many chunks as there ever are (see
    /// [`Store::new`]), and memory is touched only when it is needed.
    fn take_chunk(&mut self, queue: u32) -> u32 {
        let chunk = self.free.pop().unwrap_or_else(|| {
            // Within the capacity of `Store::new`, so neither vector allocates.
            self.headers.push(FREE);
            self.slots.resize(self.headers.len() * CHUNK, Slot::default());
            self.headers.len() as u32 - 1
        });
        self.headers[chunk as usize].queue = queue;
        chunk
    }

    fn give_chunk(&mut self, line: &mut QueueLine, chunk: u32) {
        let Header { next, previous, .. } = self.headers[chunk as usize];
        match self.headers.get_mut(previous as usize) {
            Some(header) => header.next = next,
            None => line.head = next,
        }
        match self.headers.get_mut(next as usize) {
            Some(header) => header.previous = previous,
            None => line.tail = previous,
        }
        // Only where no chunk is behind: otherwise `close` or `move_slots` has moved the cursor on.
        if line.cursor.chunk == chunk {
            line.cursor = self.end(line);
        }
        self.headers[chunk as usize] = FREE;
        self.free.push(chunk);
    }

    /// The place behind the last slot.
    pub(super) fn end(&self, line: &QueueLine) -> SlotPlace {
        match self.headers.get(line.tail as usize) {
            Some(header) => SlotPlace { chunk: line.tail, slot: header.len },
            None => SlotPlace::NOWHERE,
        }
    }
}

/// Brings a value's cache line near, without waiting for it. Does nothing on machines where it cannot.
#[inline]
fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction (SSE, which every x86-64 processor has) is a hint. It reads nothing that the
    // program sees and cannot fault. In addition, the address is that of a live value.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
