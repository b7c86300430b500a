//! An intrusive heap over dense client numbers: the least key first, ties by client number.
//!
//! | | |
//! |---|---|
//! | push, pop, removal of any client | O(log₄ N) |
//! | the least | constant time |
//! | memory | 20 bytes a client, made once |
//!
//! A node has four children instead of two: half the levels, and the four keys that are compared lie in one
//! cache line. A key holds the time and the client in one number. So a comparison is one subtraction and
//! breaks ties by itself. Slots without a client hold the greatest number, so no comparison checks for the
//! end.
//!
//! A popped root leaves a hole. A client that goes on is pushed next, into the hole and down: one way
//! through the heap instead of two.

use alloc::vec;
use alloc::vec::Vec;

use crate::ClientId;
use crate::virtual_time::VirtualTime;

/// Four siblings in one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct HeapLine([u128; 4]);

/// Above every key.
const NO_KEY: u128 = u128::MAX;
/// The root's slot. Its children are slots 4 to 7, which begin a line, and so do the children of all others.
const ROOT: usize = 3;
/// The slot of a client that is not in the heap.
const ABSENT: u32 = 0;

/// A heap; each client is in it at most once.
pub struct Heap {
    lines: Vec<HeapLine>,
    /// Each client's slot.
    places: Vec<u32>,
    /// One past the last slot in use.
    end: usize,
    /// Whether the root is vacant although it is in use.
    hole: bool,
    /// Steps between levels, each with at most four comparisons, for tests that count.
    #[cfg(test)]
    pub(crate) steps: u64,
}

impl Heap {
    pub(crate) fn new(clients: u32) -> Heap {
        let lines = (ROOT + clients as usize).div_ceil(4);
        Heap {
            lines: vec![HeapLine([NO_KEY; 4]); lines],
            places: vec![ABSENT; clients as usize],
            end: ROOT,
            hole: false,
            #[cfg(test)]
            steps: 0,
        }
    }

    /// Puts in a client that is not in the heap.
    pub(crate) fn push(&mut self, time: VirtualTime, client: ClientId) {
        // Times have 96 bits, so the client fits below: the order is by time, then by client.
        let key = time << 32 | u128::from(client.get());
        if core::mem::take(&mut self.hole) {
            // As a rule a push follows a pop: from the root down it is one way through the heap.
            self.sift_down(ROOT, key);
        } else {
            self.end += 1;
            self.sift_up(self.end - 1, key);
        }
    }

    /// Takes out the least client.
    pub(crate) fn pop(&mut self) -> Option<ClientId> {
        self.fill_hole();
        let client = (self.end > ROOT).then(|| client_of(self.key(ROOT)))?;
        self.places[client.index()] = ABSENT;
        // As a rule the next call is a push, which uses the hole.
        self.hole = true;
        Some(client)
    }

    /// The least key. This looks past a hole without filling it, so that the next push can still use it.
    pub(crate) fn least(&self) -> Option<(VirtualTime, ClientId)> {
        // Under a hole the least key is among the root's children, whose line is two before the root's slot.
        let root = if self.hole { least_of(&self.lines.get(ROOT - 2)?.0).1 } else { self.key(ROOT) };
        (root != NO_KEY).then(|| (root >> 32, client_of(root)))
    }

    /// Takes out a client; `false` if it was not in the heap.
    pub(crate) fn remove(&mut self, client: ClientId) -> bool {
        self.fill_hole();
        let slot = self.places.get(client.index()).map_or(ABSENT, |&slot| slot) as usize;
        if slot == ABSENT as usize {
            return false;
        }
        self.places[client.index()] = ABSENT;
        let last = self.take_last();
        // If the client was the last one, its slot is free already.
        if slot < self.end {
            self.replace(slot, last);
        }
        true
    }

    /// Moves the last key into the hole, if there is one.
    fn fill_hole(&mut self) {
        if core::mem::take(&mut self.hole) {
            let last = self.take_last();
            // If the hole was the only key, `last` is the popped root, which leaves with its slot.
            if self.end > ROOT {
                self.sift_down(ROOT, last);
            }
        }
    }

    fn take_last(&mut self) -> u128 {
        self.end -= 1;
        // Free slots hold the greatest number, so that `least_of` never chooses them.
        core::mem::replace(&mut self.lines[self.end / 4].0[self.end % 4], NO_KEY)
    }

    /// Puts a key into the slot of another that has left.
    fn replace(&mut self, slot: usize, key: u128) {
        // The last key comes from another branch, so it may belong above this slot as well as below.
        if slot > ROOT && key < self.key(parent(slot)) {
            self.sift_up(slot, key);
        } else {
            self.sift_down(slot, key);
        }
    }

    fn sift_up(&mut self, mut slot: usize, key: u128) {
        while slot > ROOT && key < self.key(parent(slot)) {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            self.put(slot, self.key(parent(slot)));
            slot = parent(slot);
        }
        self.put(slot, key);
    }

    fn sift_down(&mut self, mut slot: usize, key: u128) {
        // The line of a slot's children is two before the slot: slot s has the children 4 (s − 2) to 4 (s −
        // 2) + 3.
        while let Some(children) = self.lines.get(slot - 2) {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            // Missing children hold the greatest number, so the loop ends at the last level without a check.
            let (offset, least) = least_of(&children.0);
            if key < least {
                break;
            }
            self.put(slot, least);
            slot = (slot - 2) * 4 + offset;
        }
        self.put(slot, key);
    }

    fn key(&self, slot: usize) -> u128 {
        self.lines[slot / 4].0[slot % 4]
    }

    fn put(&mut self, slot: usize, key: u128) {
        self.lines[slot / 4].0[slot % 4] = key;
        self.places[client_of(key).index()] = slot as u32;
    }
}

fn parent(slot: usize) -> usize {
    slot / 4 + 2
}

/// The client is in the low 32 bits, which the cast keeps.
fn client_of(key: u128) -> ClientId {
    ClientId::new(key as u32)
}

/// The least of four keys and its index: a tournament without branches, which random keys would mispredict.
fn least_of(keys: &[u128; 4]) -> (usize, u128) {
    let left = usize::from(keys[1] < keys[0]);
    let right = 2 + usize::from(keys[3] < keys[2]);
    let winner = if keys[right] < keys[left] { right } else { left };
    (winner, keys[winner])
}
