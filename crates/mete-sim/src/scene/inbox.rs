//! What has come for the tasks of one client: packets by port, and who waits for which read.

use std::collections::VecDeque;

use mete_policy::RequestId;

use super::io::{Kind, Packet, Read};

struct Port {
    port: u16,
    packets: VecDeque<Packet>,
    /// Segments taken and not acknowledged.
    unacknowledged: u32,
}

/// A client's packets and outstanding reads.
#[derive(Default)]
pub(super) struct Inbox {
    /// The ports that somebody listens on; few, so they are searched one by one.
    ports: Vec<Port>,
    /// Which task waits for which request.
    requests: Vec<Option<u16>>,
    /// How many reads may be under way; 0: any number.
    read_depth: usize,
    under_way: usize,
    /// Reads that wait until fewer are under way.
    deferred: VecDeque<Read>,
    dropped: u64,
    /// How many packets of its own tasks a port holds; 0: any number.
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
                self.ports.push(Port { port, packets: VecDeque::new(), unacknowledged: 0 });
            }
        }
    }

    /// Packets for ports that nobody listens on; they are thrown away.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Keeps a packet until a task takes it; whether somebody listens there.
    pub(super) fn put(&mut self, port: u16, packet: Packet) -> bool {
        if let Kind::Acknowledgement { .. } = packet.kind {
            // The kernel's own business: no task is woken.
            return false;
        }
        match self.ports.iter_mut().find(|known| known.port == port) {
            Some(known) => {
                known.packets.push_back(packet);
                true
            }
            None => {
                self.dropped += 1;
                false
            }
        }
    }

    /// From now on a port holds so many packets of the client's own tasks; 0: any number.
    pub(super) fn set_port_packets(&mut self, packets: usize) {
        self.port_packets = packets;
    }

    /// The client's own tasks have to wait before they send there.
    pub(super) fn is_full(&self, port: u16) -> bool {
        self.port_packets > 0 && self.held(port) >= self.port_packets
    }

    /// Taking the last packet has made it so empty that those who wait may send again.
    pub(super) fn has_room_again(&self, port: u16) -> bool {
        self.port_packets > 0 && self.held(port) == self.port_packets / 4
    }

    fn held(&self, port: u16) -> usize {
        self.ports.iter().find(|known| known.port == port).map_or(0, |known| known.packets.len())
    }

    /// The oldest packet for a port.
    pub(super) fn take(&mut self, port: u16) -> Option<Packet> {
        self.ports.iter_mut().find(|known| known.port == port)?.packets.pop_front()
    }

    /// The acknowledgement that is due for a packet that was taken: for every second segment of a stream
    /// and for its last (RFC 1122, §4.2.3.2; what remains of a stream would be after some time).
    pub(super) fn acknowledge(&mut self, port: u16, packet: Packet) -> Option<Packet> {
        let Kind::Segment { is_last } = packet.kind else { return None };
        let known = self.ports.iter_mut().find(|known| known.port == port)?;
        known.unacknowledged += 1;
        if known.unacknowledged < 2 && !is_last {
            return None;
        }
        Some(packet.acknowledgement(std::mem::take(&mut known.unacknowledged)))
    }

    /// A free request number, for a read by `task`.
    pub(super) fn request(&mut self, task: u16) -> RequestId {
        let free = self.requests.iter().position(Option::is_none).unwrap_or(self.requests.len());
        if free == self.requests.len() {
            self.requests.push(None);
        }
        self.requests[free] = Some(task);
        free as RequestId
    }

    /// From now on so many reads may be under way; 0: any number.
    pub(super) fn set_read_depth(&mut self, depth: usize) {
        self.read_depth = depth;
    }

    /// A read that may go to the disk now; otherwise it waits.
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

    /// The task that waited for a read; its request number is free again.
    pub(super) fn complete(&mut self, request: RequestId) -> Option<u16> {
        let task = self.requests.get_mut(usize::from(request))?.take()?;
        self.under_way = self.under_way.saturating_sub(1);
        Some(task)
    }
}
