//! Where in the queue a client that has become runnable belongs (VTRR paper, §3.2, §3.3).
//!
//! Both schemes of the paper first look beside the two clients between which the newcomer stood when it left.
//! One of them is still a guide if it is in the queue and the newcomer belongs on the same side of it as
//! before. Then the place is next to it, or a step for each chunk of clients that came between. Where neither
//! is a guide, [`Insertion::neighbours`] goes through the queue from the nearest of a sample of places, and
//! [`Insertion::ranged`] looks the share up in an array of all shares that there may be.
//!
//! The result is the same: the order is by share and number, whichever way the place is found.

use alloc::boxed::Box;

use super::departure::Departure;
use super::ranged::Ranged;
use super::slot::{Key, Slot};
use super::store::{QueueLine, SlotPlace, Store};

/// Finds the place, and counts how often the neighbours did and did not help.
pub(super) struct Insertion {
    ranged: Option<Box<Ranged>>,
    pub(super) beside: u64,
    pub(super) searched: u64,
}

impl Insertion {
    /// Looks through the queue where the neighbours do not help.
    pub(super) fn neighbours() -> Insertion {
        Insertion { ranged: None, beside: 0, searched: 0 }
    }

    /// Finds shares up to `largest` in an array where the neighbours do not help.
    pub(super) fn ranged(largest: u32) -> Insertion {
        Insertion { ranged: Some(Box::new(Ranged::new(largest))), ..Insertion::neighbours() }
    }

    /// The chunk in which the search for the place begins.
    pub(super) fn start(
        &mut self,
        store: &Store,
        line: &QueueLine,
        key: Key,
        departure: Departure,
    ) -> Option<u32> {
        if let Some(chunk) = beside(store, line, key, departure) {
            self.beside += 1;
            return Some(chunk);
        }
        self.searched += 1;
        match &self.ranged {
            Some(ranged) => ranged.at_or_before(key).and_then(|entity| store.home(entity)),
            None => store.sample(line, key),
        }
    }

    pub(super) fn inserted(&mut self, store: &Store, place: SlotPlace) {
        if let (Some(ranged), Some(slot)) = (&mut self.ranged, store.get(place)) {
            ranged.inserted(slot);
        }
    }

    pub(super) fn leaves(&mut self, slot: &Slot, before: Option<&Slot>) {
        if let Some(ranged) = &mut self.ranged {
            ranged.leaves(slot, before);
        }
    }
}

/// The chunk of a last neighbour that is still a guide.
fn beside(store: &Store, line: &QueueLine, key: Key, departure: Departure) -> Option<u32> {
    // The keys decide, not the departure: shares may have changed, and numbers been used again.
    let before = store.chunk_and_key(line, departure.before).filter(|&(_, before)| before < key);
    let guide =
        before.or_else(|| store.chunk_and_key(line, departure.behind).filter(|&(_, behind)| key < behind));
    guide.map(|(chunk, _)| chunk)
}
