//! What clients reach the world by: disks and the network.

use mete_policy::{ClientId, Nanoseconds, Observation, RequestId};

use super::{Event, Scene, Signal};
use crate::model::Context;
use crate::random::{Distribution, Stream};

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A port of a client.
    Client {
        /// The client.
        client: ClientId,
        /// Its port.
        port: u16,
    },
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Who sent it.
    pub from: Peer,
    /// Who is to get it.
    pub to: Peer,
    /// How long it is.
    pub bytes: u64,
    /// When it was sent.
    pub sent_ns: Nanoseconds,
}

impl Packet {
    /// A packet back to where this one came from, sent when this one was: so both ways are counted.
    pub(super) fn answer(self, bytes: u64) -> Packet {
        Packet { from: self.to, to: self.from, bytes, ..self }
    }
}

/// How long `bytes` take at a rate, rounded up; nothing at the rate 0, which means at once.
pub(super) fn transfer_ns(bytes: u64, bytes_per_s: u64) -> Nanoseconds {
    if bytes_per_s == 0 {
        return 0;
    }
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_s));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// A device that serves one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    free_ns: Nanoseconds,
}

impl Line {
    /// When a job of this length that comes now is done.
    pub(super) fn serve(&mut self, now_ns: Nanoseconds, length_ns: Nanoseconds) -> Nanoseconds {
        self.free_ns = self.free_ns.max(now_ns).saturating_add(length_ns);
        self.free_ns
    }
}

/// A disk: reads take a positioning time and a transfer, one after the other.
#[derive(Clone, Debug)]
pub struct Disk {
    /// How long it takes to get to the data, in nanoseconds.
    pub seek: Distribution,
    /// How fast data comes then; 0: at once.
    pub bytes_per_s: u64,
}

/// The network between all clients: packets take a time to be sent, one after the other, and a delay.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// From the end of sending to the arrival.
    pub delay_ns: Nanoseconds,
    /// How fast packets are sent; 0: at once.
    pub bytes_per_s: u64,
}

/// All devices.
pub struct Io {
    disks: Vec<(Disk, Line, Stream)>,
    network: Network,
    link: Line,
}

impl Io {
    /// These devices; `seed` is the run's.
    #[must_use]
    pub fn new(disks: Vec<Disk>, network: Network, seed: u64) -> Io {
        let with_stream =
            |(number, disk)| (disk, Line::default(), Stream::new(seed, &format!("disk {number}")));
        Io { disks: disks.into_iter().enumerate().map(with_stream).collect(), network, link: Line::default() }
    }

    /// Reads from a disk; the client gets [`Signal::Read`] when the data are there.
    pub(super) fn read(
        &mut self,
        client: ClientId,
        request: RequestId,
        disk: usize,
        bytes: u64,
        context: &mut Context<'_, Scene>,
    ) {
        context.observe(Observation::BlockRead { client, request });
        let (disk, line, stream) = &mut self.disks[disk];
        let length_ns = disk.seek.sample(stream).saturating_add(transfer_ns(bytes, disk.bytes_per_s));
        let done_ns = line.serve(context.now_ns(), length_ns);
        context.notify_after(done_ns - context.now_ns(), client, Signal::Read { request });
    }

    /// Sends a packet; whom it is for gets [`Signal::Packet`] when it arrives.
    pub(super) fn send(&mut self, packet: Packet, context: &mut Context<'_, Scene>) {
        let length_ns = transfer_ns(packet.bytes, self.network.bytes_per_s);
        let sent_ns = self.link.serve(context.now_ns(), length_ns);
        let arrives_ns = sent_ns.saturating_add(self.network.delay_ns);
        context.after(arrives_ns - context.now_ns(), Event::Arrive(packet));
    }

    /// A packet has arrived.
    pub(super) fn arrive(&mut self, packet: Packet, context: &mut Context<'_, Scene>) {
        match packet.to {
            Peer::Client { client, port } => context.notify(client, Signal::Packet { port, packet }),
        }
    }
}
