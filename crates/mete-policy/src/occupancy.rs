//! Who runs on which processor, as far as a policy's own decisions tell.
//!
//! An owner may pick ahead, so a processor's occupant is that of the latest decision for it; the client
//! before that may still be there, and is the occupant again if the decision is given back.

use alloc::vec;
use alloc::vec::Vec;

use crate::{ClientId, Nanoseconds, ProcessorId};

/// The latest decision for a processor that is still in force.
#[derive(Clone, Copy)]
pub(crate) struct Occupant {
    pub(crate) client: ClientId,
    pub(crate) since_ns: Nanoseconds,
}

#[derive(Clone, Copy, Default)]
struct Seat {
    latest: Option<Occupant>,
    /// Who was picked before that and has not left.
    before: Option<Occupant>,
}

impl Seat {
    /// Whether the client was there.
    fn leave(&mut self, client: ClientId) -> bool {
        let is_client = |occupant: &mut Occupant| occupant.client == client;
        if self.before.take_if(is_client).is_some() {
            return true;
        }
        let left = self.latest.take_if(is_client).is_some();
        if left {
            self.latest = self.before.take();
        }
        left
    }
}

/// The occupants of all processors.
pub(crate) struct Occupancy {
    seats: Vec<Seat>,
}

impl Occupancy {
    pub(crate) fn new(processors: ProcessorId) -> Occupancy {
        Occupancy { seats: vec![Seat::default(); usize::from(processors.max(1))] }
    }

    pub(crate) fn enter(&mut self, processor: ProcessorId, client: ClientId, now: Nanoseconds) {
        if let Some(seat) = self.seats.get_mut(usize::from(processor)) {
            *seat = Seat { latest: Some(Occupant { client, since_ns: now }), before: seat.latest };
        }
    }

    /// Takes a client off whichever processor it occupies, and answers which; linear in processors.
    pub(crate) fn leave(&mut self, client: ClientId) -> Option<ProcessorId> {
        let mut seats = (0..).zip(&mut self.seats);
        seats.find_map(|(processor, seat)| seat.leave(client).then_some(processor))
    }

    pub(crate) fn any_idle(&self) -> bool {
        self.seats.iter().any(|seat| seat.latest.is_none())
    }

    pub(crate) fn on(&self, processor: ProcessorId) -> Option<Occupant> {
        self.seats.get(usize::from(processor)).and_then(|seat| seat.latest)
    }

    /// The processors that are occupied, with their occupants.
    pub(crate) fn all(&self) -> impl Iterator<Item = (ProcessorId, Occupant)> {
        (0..).zip(&self.seats).filter_map(|(processor, seat)| Some((processor, seat.latest?)))
    }
}
