//! A stream from a remote machine in the manner of TCP: so many segments may be under way, and what comes
//! back acknowledged lets new ones go.
//!
//! It begins with 3 segments (RFC 3390, for segments of 1460 bytes) and one more for each
//! acknowledgement (slow start), up to its window. Nothing is lost on this network, so there is no
//! congestion avoidance and nothing is sent again: what a real sender would suffer from its timers
//! besides waiting is not here.

use mete_policy::Nanoseconds;

use super::io::{Kind, Packet, Peer};

/// How many segments go at first (RFC 3390).
const FIRST_SEGMENTS: u64 = 3;

/// A stream under way.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    to: Peer,
    /// When it was asked for; every segment carries it.
    asked_ns: Nanoseconds,
    left_bytes: u64,
    under_way: u64,
    allowed: u64,
    window: u64,
}

impl Transfer {
    /// A stream of so many bytes with at most `window` segments under way. At least 2, because a
    /// receiver acknowledges every second segment (RFC 1122, §4.2.3.2).
    pub(super) fn new(to: Peer, bytes: u64, window: u64, asked_ns: Nanoseconds) -> Transfer {
        let window = window.max(2);
        Transfer {
            to,
            asked_ns,
            left_bytes: bytes,
            under_way: 0,
            allowed: FIRST_SEGMENTS.min(window),
            window,
        }
    }

    /// The next segment, of at most `segment_bytes`, if one may go now.
    pub(super) fn segment(&mut self, from: Peer, segment_bytes: u64) -> Option<Packet> {
        if self.left_bytes == 0 || self.under_way >= self.allowed {
            return None;
        }
        let bytes = self.left_bytes.min(segment_bytes);
        self.left_bytes -= bytes;
        self.under_way += 1;
        let kind = Kind::Segment { is_last: self.left_bytes == 0 };
        Some(Packet { from, to: self.to, bytes, sent_ns: self.asked_ns, kind })
    }

    /// Whether an acknowledgement from there is for this stream.
    pub(super) fn awaits(&self, from: Peer) -> bool {
        self.to == from && self.under_way > 0
    }

    /// So many segments have been taken by the receiver.
    pub(super) fn acknowledged(&mut self, segments: u32) {
        self.under_way = self.under_way.saturating_sub(u64::from(segments));
        self.allowed = (self.allowed + 1).min(self.window);
    }

    pub(super) fn is_over(&self) -> bool {
        self.left_bytes == 0 && self.under_way == 0
    }
}
