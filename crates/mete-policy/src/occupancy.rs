//! Who runs on which processor, as far as a policy's own decisions tell.
//!
//! An owner may pick ahead, so a processor's occupant is that of the latest decision for it; the client
//! before that may still be there, and is the occupant again if the decision is given back.
//!
//! A processor whose client is to give way belongs to the client that asked for it from then on, although the
//! owner takes a while, or first tells of others that wake at the same instant.

use alloc::vec;
use alloc::vec::Vec;

use crate::roster::{Roster, State};
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
    /// For whom the occupant is to give way.
    asking: Option<ClientId>,
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
            self.asking = None;
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
            let latest = Some(Occupant { client, since_ns: now });
            *seat = Seat { latest, before: seat.latest, asking: None };
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

    /// A client is to have a processor as soon as its occupant has given way.
    pub(crate) fn ask(&mut self, processor: ProcessorId, client: ClientId) {
        if let Some(seat) = self.seats.get_mut(usize::from(processor)) {
            seat.asking = Some(client);
        }
    }

    /// Who else than `client` asked for a processor, and is still ready.
    pub(crate) fn asking(
        &self,
        processor: ProcessorId,
        client: ClientId,
        roster: &Roster,
    ) -> Option<ClientId> {
        let asking = self.seats.get(usize::from(processor)).and_then(|seat| seat.asking)?;
        (asking != client && roster.state(asking) == State::Ready).then_some(asking)
    }

    /// The processors that are occupied, with their occupants.
    pub(crate) fn all(&self) -> impl Iterator<Item = (ProcessorId, Occupant)> {
        (0..).zip(&self.seats).filter_map(|(processor, seat)| Some((processor, seat.latest?)))
    }
}
