//! Who runs on which processor, as far as a policy's own decisions tell.
//!
//! An owner may pick ahead, so a processor's entry is the latest decision for it; the client before
//! that may still be there.

use alloc::vec;
use alloc::vec::Vec;

use crate::{ClientId, Nanoseconds, ProcessorId};

/// The latest decision for a processor that is still in force.
#[derive(Clone, Copy)]
pub(crate) struct Occupant {
    pub(crate) client: ClientId,
    pub(crate) since_ns: Nanoseconds,
}

/// The occupants of all processors.
pub(crate) struct Occupancy {
    occupants: Vec<Option<Occupant>>,
}

impl Occupancy {
    pub(crate) fn new(processors: ProcessorId) -> Occupancy {
        Occupancy { occupants: vec![None; usize::from(processors.max(1))] }
    }

    pub(crate) fn enter(&mut self, processor: ProcessorId, client: ClientId, now: Nanoseconds) {
        if let Some(place) = self.occupants.get_mut(usize::from(processor)) {
            *place = Some(Occupant { client, since_ns: now });
        }
    }

    /// Takes a client off whichever processor it occupies; linear in processors.
    pub(crate) fn leave(&mut self, client: ClientId) {
        for place in &mut self.occupants {
            if place.is_some_and(|occupant| occupant.client == client) {
                *place = None;
            }
        }
    }

    pub(crate) fn any_idle(&self) -> bool {
        self.occupants.iter().any(Option::is_none)
    }

    pub(crate) fn on(&self, processor: ProcessorId) -> Option<Occupant> {
        self.occupants.get(usize::from(processor)).copied().flatten()
    }

    /// The processors that are occupied, with their occupants.
    pub(crate) fn all(&self) -> impl Iterator<Item = (ProcessorId, Occupant)> {
        (0..).zip(&self.occupants).filter_map(|(processor, &place)| Some((processor, place?)))
    }
}
