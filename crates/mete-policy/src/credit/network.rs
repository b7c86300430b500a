//! TAVS-5, network: does the packet wake an I/O-bound task? Learnt from what packets woke before (§3.5.2).
//!
//! Packets come unasked, so the portmap is taught afterwards: if all packets that were pending when a
//! virtual processor was dispatched are for one port, the first task that is switched in tells about
//! that port. A driver notes the ports of what it forwards, so many in one slice of its own, and the
//! notes are read when it is descheduled (§3.5.3).

use alloc::vec;
use alloc::vec::Vec;

use super::portmap::Portmap;
use super::settings::TavsSettings;
use crate::ClientId;

/// What is pending for a virtual processor that does not run.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    One(u16),
    Several,
}

#[derive(Clone)]
struct Guest {
    map: Portmap,
    pending: Pending,
    /// The port about which the first task woken in this slice will tell.
    asked: Option<u16>,
    /// `pending` and `asked` before it was dispatched.
    before: (Pending, Option<u16>),
}

/// The portmaps of all tracked virtual processors and the notes of the running driver.
pub(super) struct NetworkCorrelation {
    guests: Vec<Guest>,
    /// `None` among the first `noted`: read already.
    notes: Vec<Option<(ClientId, u16)>>,
    noted: usize,
}

impl NetworkCorrelation {
    pub(super) fn new(clients: u32, settings: &TavsSettings) -> NetworkCorrelation {
        let guest = || Guest {
            map: Portmap::new(settings.portmap_bits),
            pending: Pending::Nothing,
            asked: None,
            before: (Pending::Nothing, None),
        };
        NetworkCorrelation {
            guests: (0..clients).map(|_| guest()).collect(),
            notes: vec![None; usize::from(settings.ports_per_slice)],
            noted: 0,
        }
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        if let Some(guest) = self.guests.get_mut(client as usize) {
            guest.map.clear();
            (guest.pending, guest.asked) = (Pending::Nothing, None);
        }
    }

    pub(super) fn counter(&self, client: ClientId, port: u16) -> Option<u8> {
        self.guests.get(client as usize).map(|guest| guest.map.counter(port))
    }

    /// The driver notes a packet. `false`: it has noted as many as it can in this slice.
    pub(super) fn note(&mut self, client: ClientId, port: u16) -> bool {
        let Some(place) = self.notes.get_mut(self.noted) else { return false };
        *place = Some((client, port));
        self.noted += 1;
        true
    }

    /// The driver is descheduled: its next note; `None` when all are read.
    pub(super) fn take_note(&mut self) -> Option<(ClientId, u16)> {
        let unread = self.notes.get_mut(..self.noted)?;
        let note = unread.iter_mut().find_map(Option::take);
        if note.is_none() {
            self.noted = 0;
        }
        note
    }

    /// A packet is pending for a virtual processor that does not run. `true`: an I/O-bound task is
    /// expected to wake for it.
    pub(super) fn arrived(&mut self, client: ClientId, port: u16) -> bool {
        let Some(guest) = self.guests.get_mut(client as usize) else { return false };
        guest.pending = match guest.pending {
            Pending::Nothing => Pending::One(port),
            Pending::One(same) if same == port => Pending::One(port),
            _ => Pending::Several,
        };
        guest.map.expects_io_bound(port)
    }

    /// It gets what is pending, unread notes of a driver on another processor included.
    pub(super) fn dispatched(&mut self, client: ClientId, resumes: bool) {
        self.read_notes_for(client);
        let Some(guest) = self.guests.get_mut(client as usize) else { return };
        guest.before = (guest.pending, guest.asked);
        guest.asked = match core::mem::take(&mut guest.pending) {
            Pending::One(port) => Some(port),
            Pending::Nothing if resumes => guest.asked,
            Pending::Nothing | Pending::Several => None,
        };
    }

    /// It was dispatched, but did not run: what was pending is pending still.
    pub(super) fn given_back(&mut self, client: ClientId) {
        if let Some(guest) = self.guests.get_mut(client as usize) {
            (guest.pending, guest.asked) = guest.before;
        }
    }

    fn read_notes_for(&mut self, client: ClientId) {
        for at in 0..self.noted {
            if let Some((to, port)) = self.notes[at]
                && to == client
            {
                self.notes[at] = None;
                self.arrived(client, port);
            }
        }
    }

    /// A task was switched in. `true`: it was the first after packets for one port, and was learnt from.
    pub(super) fn woken(&mut self, client: ClientId, io_bound: bool) -> bool {
        let Some(guest) = self.guests.get_mut(client as usize) else { return false };
        let Some(port) = guest.asked.take() else { return false };
        guest.map.update(port, io_bound);
        true
    }
}
