//! TAVS-5, network: does the packet wake an I/O-bound task? Learnt from what earlier packets woke (§3.5.2).
//!
//! No request announces a packet, so the portmap is taught afterwards. The first task that is switched in
//! after a virtual processor was dispatched tells about the port of the packets that were pending then. A
//! driver notes the ports of what it forwards, up to a number of packets in one slice of its own. The notes
//! are read when the driver is descheduled (§3.5.3).
//!
//! The paper says twice what is to be done with packets for several ports, in two different ways:
//!
//! * §3.5.2, [`learn_by_driver_slice`](super::TavsSettings) off: it teaches if "all incoming packets are
//!   destined for a single port number before the time slice of the target".
//! * §3.5.3 and figure 5(b), the setting on: it teaches "because a packet for one destination port number
//!   reaches during the time slice of the IDD".
//!
//! By the second, packets for two ports that came in two slices of the driver's teach about both ports,
//! although only one of the tasks can have been the first. Counters of more than one bit make up for such
//! errors.

use alloc::vec;
use alloc::vec::Vec;

use super::portmap::Portmap;
use super::settings::TavsSettings;
use crate::ClientId;

/// The number of ports that one slice can teach about; more are left out.
const MOST_PORTS: usize = 16;

/// Ports, each once.
#[derive(Clone, Copy, Default)]
struct Ports {
    ports: [u16; MOST_PORTS],
    count: usize,
}

impl Ports {
    fn add(&mut self, port: u16) {
        if self.count < MOST_PORTS && !self.all().contains(&port) {
            self.ports[self.count] = port;
            self.count += 1;
        }
    }

    fn all(&self) -> &[u16] {
        &self.ports[..self.count.min(MOST_PORTS)]
    }
}

/// What is pending for a virtual processor that does not run, as far as it teaches.
#[derive(Clone, Copy, Default)]
struct PortLesson {
    /// The ports that the first task woken will tell about.
    ports: Ports,
    /// Some packets were for ports that cannot be told apart.
    is_unclear: bool,
}

#[derive(Clone)]
struct NetworkGuest {
    map: Portmap,
    pending: PortLesson,
    /// What the first task that is woken in this slice will tell about.
    asked: Ports,
    /// `pending` and `asked` before the virtual processor was dispatched.
    before: (PortLesson, Ports),
}

impl NetworkGuest {
    fn new(bits: u8) -> NetworkGuest {
        let (pending, asked) = (PortLesson::default(), Ports::default());
        NetworkGuest { map: Portmap::new(bits), pending, asked, before: (pending, asked) }
    }
}

/// A packet that the driver has forwarded.
#[derive(Clone, Copy, Default)]
struct PacketNote {
    client: ClientId,
    port: u16,
    is_read: bool,
}

/// The portmaps of all tracked virtual processors and the notes of the running driver.
pub(super) struct NetworkCorrelation {
    guests: Vec<NetworkGuest>,
    notes: Vec<PacketNote>,
    noted: usize,
    by_driver_slice: bool,
}

impl NetworkCorrelation {
    pub(super) fn new(clients: u32, settings: &TavsSettings) -> NetworkCorrelation {
        NetworkCorrelation {
            guests: (0..clients).map(|_| NetworkGuest::new(settings.portmap_bits)).collect(),
            notes: vec![PacketNote::default(); usize::from(settings.ports_per_slice)],
            noted: 0,
            by_driver_slice: settings.learn_by_driver_slice,
        }
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        if let Some(guest) = self.guests.get_mut(client.index()) {
            guest.map.clear();
            (guest.pending, guest.asked) = (PortLesson::default(), Ports::default());
        }
    }

    pub(super) fn counter(&self, client: ClientId, port: u16) -> Option<u8> {
        self.guests.get(client.index()).map(|guest| guest.map.counter(port))
    }

    /// The driver notes a packet. `false`: it has noted as many as it can in this slice.
    pub(super) fn note(&mut self, client: ClientId, port: u16) -> bool {
        let Some(place) = self.notes.get_mut(self.noted) else { return false };
        *place = PacketNote { client, port, is_read: false };
        self.noted += 1;
        true
    }

    /// The driver is descheduled: answers its next note; `None` when all are read.
    pub(super) fn take_note(&mut self) -> Option<(ClientId, u16)> {
        let notes = self.notes.get_mut(..self.noted)?;
        let Some(note) = notes.iter_mut().find(|note| !note.is_read) else {
            // The next slice of a driver starts with all its notes free.
            self.noted = 0;
            return None;
        };
        note.is_read = true;
        Some((note.client, note.port))
    }

    /// A packet is pending for a virtual processor that does not run. `true`: an I/O-bound task is
    /// expected to wake for it.
    pub(super) fn arrived(&mut self, client: ClientId, port: u16) -> bool {
        let is_clear = !self.by_driver_slice || self.is_only_port(client, port);
        let Some(guest) = self.guests.get_mut(client.index()) else { return false };
        if is_clear {
            guest.pending.ports.add(port);
        }
        // By §3.5.2 one port is clear only if nothing else is pending before the slice.
        guest.pending.is_unclear = !self.by_driver_slice && guest.pending.ports.count > 1;
        guest.map.expects_io_bound(port)
    }

    /// The driver has forwarded no packet for another port of the client's in this slice of its own.
    fn is_only_port(&self, client: ClientId, port: u16) -> bool {
        let mut notes = self.notes.iter().take(self.noted);
        notes.all(|note| note.client != client || note.port == port)
    }

    /// The virtual processor gets what is pending, unread notes of a driver on another processor included.
    pub(super) fn dispatched(&mut self, client: ClientId, resumes: bool) {
        self.read_notes_for(client);
        let Some(guest) = self.guests.get_mut(client.index()) else { return };
        guest.before = (guest.pending, guest.asked);
        let pending = core::mem::take(&mut guest.pending);
        if pending.is_unclear {
            guest.asked = Ports::default();
        } else if pending.ports.count > 0 || !resumes {
            // A resumed slice with nothing new still waits for its first task, and keeps what it asked.
            guest.asked = pending.ports;
        }
    }

    /// The virtual processor was dispatched, but did not run: what was pending is pending still.
    pub(super) fn given_back(&mut self, client: ClientId) {
        if let Some(guest) = self.guests.get_mut(client.index()) {
            (guest.pending, guest.asked) = guest.before;
        }
    }

    fn read_notes_for(&mut self, client: ClientId) {
        // Marked as read, not removed: the driver's slice goes on, and `is_only_port` still counts them.
        for at in 0..self.noted {
            let note = self.notes[at];
            if note.client == client && !note.is_read {
                self.notes[at].is_read = true;
                self.arrived(client, note.port);
            }
        }
    }

    /// A task was switched in. Answers the number of ports that were learnt about, because this task was the
    /// first after packets for them.
    pub(super) fn woken(&mut self, client: ClientId, io_bound: bool) -> u64 {
        let Some(guest) = self.guests.get_mut(client.index()) else { return 0 };
        // Taken: a later task of the slice was not woken by these packets.
        let asked = core::mem::take(&mut guest.asked);
        for &port in asked.all() {
            guest.map.update(port, io_bound);
        }
        asked.count as u64
    }
}
