//! An array of all shares that there may be: constant-time insertion for a fixed range (VTRR paper, §3.3).
//!
//! The array holds, for each share, the last of its clients in the queue. A bitmap has a bit for each share
//! that has clients; summaries of the bitmap's words lie above it. So the next larger share is found in as
//! many steps as there are levels: four for 2²⁰ shares.

use alloc::vec;
use alloc::vec::Vec;

use super::slot::{Entity, Key, Slot};

/// The last client of each share that is in the queue.
pub(super) struct Ranged {
    /// One more than the client's number; zero if there is none, so that memory is not touched before use.
    last: Vec<u32>,
    /// Bits of the shares that have clients; in each next level, bits of the words below that are not zero.
    levels: Vec<Vec<u64>>,
}

impl Ranged {
    /// An array for shares up to `largest`. Larger shares are found by a walk from the largest in the array.
    pub(super) fn new(largest: u32) -> Ranged {
        let mut words = (largest as usize + 1).div_ceil(64);
        let mut levels = vec![vec![0; words]];
        while words > 1 {
            words = words.div_ceil(64);
            levels.push(vec![0; words]);
        }
        Ranged { last: vec![0; largest as usize + 1], levels }
    }

    /// The last client with the same share, else the last with the next larger share that has clients.
    pub(super) fn at_or_before(&self, key: Key) -> Option<Entity> {
        let share = self.at_or_above(key.share() as usize)?;
        self.last.get(share)?.checked_sub(1).map(Entity::new)
    }

    /// A client was put into the queue.
    pub(super) fn inserted(&mut self, slot: &Slot) {
        let Some(last) = self.last.get_mut(slot.share as usize) else { return };
        // The first client of a share: its bit, and those of the words above, may not be set yet.
        if *last == 0 {
            self.levels.iter_mut().fold(slot.share as usize, |index, level| {
                level[index / 64] |= 1 << (index % 64);
                index / 64
            });
        }
        *last = (*last).max(slot.entity.get() + 1);
    }

    /// A client is about to leave the queue; `before` stands before it.
    pub(super) fn leaves(&mut self, slot: &Slot, before: Option<&Slot>) {
        let share = slot.share as usize;
        let Some(last) = self.last.get_mut(share).filter(|last| **last == slot.entity.get() + 1) else {
            return;
        };
        // Clients of a share stand by number, so the one before is the last one now.
        *last =
            before.filter(|before| before.share == slot.share).map_or(0, |before| before.entity.get() + 1);
        if *last == 0 {
            self.clear(share);
        }
    }

    fn clear(&mut self, mut index: usize) {
        for level in &mut self.levels {
            level[index / 64] &= !(1 << (index % 64));
            // The word still has bits, so the summaries of it stay.
            if level[index / 64] != 0 {
                break;
            }
            index /= 64;
        }
    }

    /// The least index from `from` on whose bit is set: up to a level that has one, and down again.
    fn at_or_above(&self, from: usize) -> Option<usize> {
        let mut index = from;
        for (height, level) in self.levels.iter().enumerate() {
            let bits = level.get(index / 64)? & (u64::MAX << (index % 64));
            if bits != 0 {
                let found = index / 64 * 64 + bits.trailing_zeros() as usize;
                return Some(self.descend(height, found));
            }
            // Words up to this one are done; the next level starts with the word behind it.
            index = index / 64 + 1;
        }
        None
    }

    fn descend(&self, height: usize, index: usize) -> usize {
        let below = self.levels[..height].iter().rev();
        below.fold(index, |index, level| index * 64 + level[index].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(share: u32, entity: u32) -> Slot {
        Slot { share, entity: Entity::new(entity), ..Slot::default() }
    }

    #[test]
    fn vtrr_2_the_array_finds_the_next_larger_share_that_has_clients() {
        let mut ranged = Ranged::new(1 << 20);
        for (entity, share) in [(1, 3), (2, 64), (3, 4096), (4, 1 << 20), (5, 64)] {
            ranged.inserted(&slot(share, entity));
        }
        let find =
            |ranged: &Ranged, share| ranged.at_or_before(Key::new(share, Entity::new(0))).map(Entity::get);
        assert_eq!(
            [1, 3, 4, 65, 5000].map(|share| find(&ranged, share)),
            [Some(1), Some(1), Some(5), Some(3), Some(4)]
        );
        ranged.leaves(&slot(64, 5), Some(&slot(64, 2)));
        assert_eq!(find(&ranged, 4), Some(2));
        ranged.leaves(&slot(64, 2), Some(&slot(4096, 3)));
        assert_eq!(find(&ranged, 4), Some(3));
        ranged.leaves(&slot(1 << 20, 4), None);
        assert_eq!(find(&ranged, 5000), None);
    }
}
