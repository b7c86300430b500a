//! Which client runs on which processor, as far as a policy's own decisions show.
//!
//! An owner may pick ahead. So a processor's occupant is the client of the latest decision for it. The client
//! before that may still be running, and is the occupant again if the decision is given back.
//!
//! A processor whose client is to give way belongs, from then on, to the client that asked for it. The owner
//! may take a while to stop the occupant, and may first report other wake-ups of the same instant.

use alloc::vec;
use alloc::vec::Vec;

use crate::roster::{ClientState, Roster};
use crate::{ClientId, Nanoseconds, ProcessorId};

/// The latest decision for a processor that is still in force.
#[derive(Clone, Copy)]
pub(crate) struct Occupant {
    pub(crate) client: ClientId,
    pub(crate) since_ns: Nanoseconds,
}

#[derive(Clone, Copy, Default)]
struct ProcessorSeat {
    latest: Option<Occupant>,
    /// The client that was picked before that and has not left.
    before: Option<Occupant>,
    /// The client for which the occupant is to give way.
    asking: Option<ClientId>,
}

impl ProcessorSeat {
    /// Takes a client off, and answers whether it was there.
    fn leave(&mut self, client: ClientId) -> bool {
        let is_client = |occupant: &mut Occupant| occupant.client == client;
        // The owner had picked ahead, and this client's run has ended: the latest decision stays in force.
        if self.before.take_if(is_client).is_some() {
            return true;
        }
        let left = self.latest.take_if(is_client).is_some();
        if left {
            // If a decision that was taken ahead is given back, the client before still has the processor.
            self.latest = self.before.take();
            self.asking = None;
        }
        left
    }
}

/// The occupants of all processors.
pub(crate) struct Occupancy {
    seats: Vec<ProcessorSeat>,
}

impl Occupancy {
    pub(crate) fn new(processors: u16) -> Occupancy {
        Occupancy { seats: vec![ProcessorSeat::default(); usize::from(processors.max(1))] }
    }

    pub(crate) fn enter(&mut self, processor: ProcessorId, client: ClientId, now: Nanoseconds) {
        // A third client in a row displaces the first: owners pick at most one decision ahead.
        if let Some(seat) = self.seats.get_mut(processor.index()) {
            let latest = Some(Occupant { client, since_ns: now });
            *seat = ProcessorSeat { latest, before: seat.latest, asking: None };
        }
    }

    /// Takes a client off the processor that it occupies, and answers which; linear in processors.
    pub(crate) fn leave(&mut self, client: ClientId) -> Option<ProcessorId> {
        let mut seats = (0..).map(ProcessorId::new).zip(&mut self.seats);
        seats.find_map(|(processor, seat)| seat.leave(client).then_some(processor))
    }

    /// As [`Occupancy::leave`], from a processor that is known, whose promise ends in any case; in constant
    /// time.
    pub(crate) fn leave_from(&mut self, processor: ProcessorId, client: ClientId) {
        if let Some(seat) = self.seats.get_mut(processor.index()) {
            seat.leave(client);
            seat.asking = None;
        }
    }

    pub(crate) fn any_idle(&self) -> bool {
        self.seats.iter().any(|seat| seat.latest.is_none())
    }

    pub(crate) fn on(&self, processor: ProcessorId) -> Option<Occupant> {
        self.seats.get(processor.index()).and_then(|seat| seat.latest)
    }

    /// Promises a processor to a client as soon as its occupant has given way.
    pub(crate) fn ask(&mut self, processor: ProcessorId, client: ClientId) {
        if let Some(seat) = self.seats.get_mut(processor.index()) {
            seat.asking = Some(client);
        }
    }

    /// The client that asked for a processor, if it is another than `client` and still ready.
    pub(crate) fn asking(
        &self,
        processor: ProcessorId,
        client: ClientId,
        roster: &Roster,
    ) -> Option<ClientId> {
        let asking = self.seats.get(processor.index()).and_then(|seat| seat.asking)?;
        (asking != client && roster.state(asking) == ClientState::Ready).then_some(asking)
    }

    /// The processors that are occupied, with their occupants.
    pub(crate) fn all(&self) -> impl Iterator<Item = (ProcessorId, Occupant)> {
        let seats = (0..).map(ProcessorId::new).zip(&self.seats);
        seats.filter_map(|(processor, seat)| Some((processor, seat.latest?)))
    }
}
