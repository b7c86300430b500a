//! What has come for the tasks of one client: packets by port, and which task waits for which read.

use std::collections::VecDeque;

use mete_policy::{Nanoseconds, RequestId};

use super::packet::{Packet, PacketKind};
use super::read::Read;
use super::tcp::{Arrival, Receiver};

#[derive(Default)]
struct Port {
    port: u16,
    packets: VecDeque<Packet>,
    /// The streams that arrive there.
    streams: Vec<Receiver>,
    /// A check for unsent acknowledgements is scheduled.
    is_timed: bool,
}

impl Port {
    /// The stream that a packet belongs to; its first packet begins it.
    fn stream(&mut self, packet: Packet) -> &mut Receiver {
        let at = self.streams.iter().position(|stream| stream.is_from(packet.from)).unwrap_or_else(|| {
            self.streams.push(Receiver::new(packet));
            self.streams.len() - 1
        });
        &mut self.streams[at]
    }

    /// Keeps a segment. The result says whether a task can take something, and what has to be sent back at
    /// once.
    fn put_segment(
        &mut self,
        packet: Packet,
        number: u64,
        stamp_ns: Nanoseconds,
        now_ns: Nanoseconds,
    ) -> (bool, Option<Packet>) {
        // Taken out, because the stream is a part of the port as well.
        let mut packets = std::mem::take(&mut self.packets);
        let arrival =
            self.stream(packet).arrive(packet, number, stamp_ns, now_ns, |packet| packets.push_back(packet));
        self.packets = packets;
        match arrival {
            Arrival::InOrder => (true, None),
            Arrival::Acknowledge { packet, is_heard } => (is_heard, Some(packet)),
        }
    }

    /// When the first of its streams has to acknowledge what it has not acknowledged.
    fn due_ns(&self) -> Option<Nanoseconds> {
        self.streams.iter().filter_map(Receiver::due_ns).min()
    }
}

/// What the arrival of a packet leads to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrived {
    /// A task can take it.
    pub is_heard: bool,
    /// What has to be sent back at once.
    pub acknowledgement: Option<Packet>,
    /// When to check for acknowledgements of the port that have not been sent.
    pub ask_at_ns: Option<Nanoseconds>,
}

/// A client's packets and outstanding reads.
#[derive(Default)]
pub(super) struct Inbox {
    /// The ports that a task listens on. They are few, so they are searched one by one.
    ports: Vec<Port>,
    /// Which task waits for which request.
    requests: Vec<Option<u16>>,
    /// How many reads may be under way; 0: any number.
    read_depth: usize,
    under_way: usize,
    /// Reads that wait until fewer are under way.
    deferred: VecDeque<Read>,
    dropped: u64,
    /// How many packets of the client's own tasks a port holds; 0: any number.
    port_packets: usize,
}

impl Inbox {
    /// An inbox with these ports.
    pub(super) fn new(ports: impl IntoIterator<Item = u16>) -> Inbox {
        let mut inbox = Inbox::default();
        inbox.listen(ports);
        inbox
    }

    /// Keeps packets for these ports, too, from now on.
    pub(super) fn listen(&mut self, ports: impl IntoIterator<Item = u16>) {
        for port in ports {
            if !self.ports.iter().any(|known| known.port == port) {
                self.ports.push(Port { port, ..Port::default() });
            }
        }
    }

    /// How many packets came for ports that no task listens on. They are thrown away.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Keeps a packet until a task takes it, if a task listens on the port.
    pub(super) fn put(&mut self, port: u16, packet: Packet, now_ns: Nanoseconds) -> Arrived {
        if let PacketKind::Acknowledgement(_) | PacketKind::Received = packet.kind {
            // These packets concern only the kernel: no task is woken.
            return Arrived::default();
        }
        let Some(known) = self.port(port) else {
            self.dropped += 1;
            return Arrived::default();
        };
        let PacketKind::Segment { number, stamp_ns, .. } = packet.kind else {
            known.packets.push_back(packet);
            return Arrived { is_heard: true, ..Arrived::default() };
        };
        let (is_heard, acknowledgement) = known.put_segment(packet, number, stamp_ns, now_ns);
        let ask_at_ns = if known.is_timed { None } else { known.due_ns() };
        // One scheduled check is enough: if something is left then, it schedules the next one.
        known.is_timed |= ask_at_ns.is_some();
        Arrived { is_heard, acknowledgement, ask_at_ns }
    }

    /// Checks a port for acknowledgements that have not been sent: whether one has waited long enough, and
    /// otherwise when to check again.
    pub(super) fn owes(&mut self, port: u16, now_ns: Nanoseconds) -> (bool, Option<Nanoseconds>) {
        let Some(known) = self.port(port) else {
            return (false, None);
        };
        let due_ns = known.due_ns();
        let is_due = due_ns.is_some_and(|due_ns| due_ns <= now_ns);
        // If something is due, no check is scheduled: the next segment to come schedules one.
        known.is_timed = due_ns.is_some() && !is_due;
        (is_due, due_ns.filter(|_| !is_due))
    }

    /// The next acknowledgement that has waited long enough at a port.
    pub(super) fn overdue(&mut self, port: u16, now_ns: Nanoseconds) -> Option<Packet> {
        let known = self.port(port)?;
        let mut streams = known.streams.iter_mut();
        let overdue = streams.find(|stream| stream.due_ns().is_some_and(|due_ns| due_ns <= now_ns))?;
        Some(overdue.acknowledgement(now_ns))
    }

    fn port(&mut self, port: u16) -> Option<&mut Port> {
        self.ports.iter_mut().find(|known| known.port == port)
    }

    /// From now on a port holds at most this number of packets of the client's own tasks; 0: any number.
    pub(super) fn set_port_packets(&mut self, packets: usize) {
        self.port_packets = packets;
    }

    /// The client's own tasks have to wait before they send there.
    pub(super) fn is_full(&self, port: u16) -> bool {
        self.port_packets > 0 && self.held(port) >= self.port_packets
    }

    /// Whether taking the last packet has emptied the port far enough that the tasks that wait may send
    /// again.
    pub(super) fn has_room_again(&self, port: u16) -> bool {
        // Exactly a quarter, not at most: the waiting tasks are woken once on the way down.
        self.port_packets > 0 && self.held(port) == self.port_packets / 4
    }

    fn held(&self, port: u16) -> usize {
        self.ports.iter().find(|known| known.port == port).map_or(0, |known| known.packets.len())
    }

    /// The oldest packet for a port.
    pub(super) fn take(&mut self, port: u16) -> Option<Packet> {
        self.port(port)?.packets.pop_front()
    }

    /// The acknowledgement that is due for a packet that a task has taken, if one is due.
    pub(super) fn acknowledge(&mut self, port: u16, packet: Packet, now_ns: Nanoseconds) -> Option<Packet> {
        let PacketKind::Segment { .. } = packet.kind else { return None };
        self.port(port)?.stream(packet).take(packet, now_ns)
    }

    /// A free request number, for a read by `task`.
    pub(super) fn request(&mut self, task: u16) -> RequestId {
        // The lowest free number, so that there are as few as reads at one time.
        let free = self.requests.iter().position(Option::is_none).unwrap_or(self.requests.len());
        if free == self.requests.len() {
            self.requests.push(None);
        }
        self.requests[free] = Some(task);
        RequestId::at(free)
    }

    /// From now on at most this number of reads may be under way; 0: any number.
    pub(super) fn set_read_depth(&mut self, depth: usize) {
        self.read_depth = depth;
    }

    /// Returns the read if it may go to the disk now; otherwise keeps it until another is complete.
    pub(super) fn admit(&mut self, read: Read) -> Option<Read> {
        if self.has_enough_reads() {
            self.deferred.push_back(read);
            return None;
        }
        self.under_way += 1;
        Some(read)
    }

    fn has_enough_reads(&self) -> bool {
        self.read_depth > 0 && self.under_way >= self.read_depth
    }

    /// A read that has waited and may go now that another is complete.
    pub(super) fn admit_deferred(&mut self) -> Option<Read> {
        let read = if self.has_enough_reads() { None } else { self.deferred.pop_front() };
        self.under_way += usize::from(read.is_some());
        read
    }

    /// The task that waited for a read. The request number is free again.
    pub(super) fn complete(&mut self, request: RequestId) -> Option<u16> {
        let task = self.requests.get_mut(request.index())?.take()?;
        self.under_way = self.under_way.saturating_sub(1);
        Some(task)
    }
}
