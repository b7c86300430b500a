//! Packets and their ends: what devices, drivers, remote machines and tasks send each other.
//!
//! A leaf: every part of the scene may use it, and it uses none of them.

use mete_policy::{ClientId, Nanoseconds};

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
    /// A remote machine, by its number.
    Remote(u16),
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// A message, or a piece of one.
    Message {
        /// This is the last packet of the message.
        is_last: bool,
    },
    /// The news that a message has come: a packet of TCP's own.
    Received,
    /// A segment of a stream; its receiver acknowledges it.
    Segment {
        /// Its number in the stream.
        number: u64,
        /// When it was sent.
        stamp_ns: Nanoseconds,
        /// This is the last segment of the answer.
        is_last: bool,
    },
    /// What a receiver reports of a stream.
    Acknowledgement(Acknowledgement),
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The sender.
    pub from: Peer,
    /// The receiver.
    pub to: Peer,
    /// How long it is, without headers.
    pub bytes: u64,
    /// When it was sent. Answers and streams carry the time of the request that they answer.
    pub sent_ns: Nanoseconds,
    /// What it carries.
    pub kind: PacketKind,
}

impl Packet {
    /// A message back to the sender of this packet. It keeps this packet's time, so both ways are counted.
    pub(super) fn answer(self, bytes: u64) -> Packet {
        Packet { from: self.to, to: self.from, bytes, kind: PacketKind::Message { is_last: true }, ..self }
    }

    /// A packet of TCP's own back to the sender of this packet.
    pub(super) fn control(self, kind: PacketKind) -> Packet {
        Packet { from: self.to, to: self.from, bytes: 0, kind, ..self }
    }

    /// Whether no other packet of the same message or stream follows.
    pub(super) fn is_last(&self) -> bool {
        matches!(self.kind, PacketKind::Message { is_last: true } | PacketKind::Segment { is_last: true, .. })
    }
}

/// How many runs of segments an acknowledgement names (RFC 2018, §3: with time stamps three fit).
pub const MOST_RUNS: usize = 3;

/// A run of segments that have come before others that are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The distance of the first one from the first segment that is missing.
    pub offset: u32,
    /// How many segments; 0: there is no such run.
    pub length: u32,
}

/// What a receiver reports of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// All segments before this one have come.
    pub next: u64,
    /// How many segments the task has taken. There is room for a window of segments from this number on.
    pub taken: u64,
    /// When the first segment that this packet acknowledges was sent (RFC 7323, §4.3).
    pub echo_ns: Nanoseconds,
    /// What has come after a gap, lowest first.
    pub held: [Run; MOST_RUNS],
}
