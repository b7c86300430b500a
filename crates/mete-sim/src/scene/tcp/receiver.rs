//! The receiver of a stream: puts segments in order, and acknowledges.
//!
//! Every second segment is acknowledged when the task takes it, as under Linux, where a waiting task does
//! TCP's work itself; what is not taken is acknowledged 40 ms after it came (RFC 1122,
//! §4.2.3.2), and at once what is out of order or has been there before (RFC 5681, §4.2).

use std::collections::BTreeMap;

use mete_policy::Nanoseconds;

use super::super::io::{Kind, Packet, Peer};
use super::{Acknowledgement, MOST_RUNS, Run};

/// How long an acknowledgement waits for something to go with: Linux's shortest (`TCP_DELACK_MIN`).
const ACKNOWLEDGE_AFTER_NS: Nanoseconds = 40_000_000;
/// After so many segments have been taken an acknowledgement is due.
const TOGETHER: u64 = 2;

/// What a segment that came brings about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrival {
    /// It is the next in order, and can be taken.
    InOrder,
    /// It has to be acknowledged at once.
    Acknowledge {
        /// By this packet.
        packet: Packet,
        /// It, and perhaps others that were held, can be taken.
        is_heard: bool,
    },
}

/// One stream as its receiver sees it.
pub(crate) struct Receiver {
    /// The first packet that came of it, which says who talks to whom.
    first: Packet,
    /// All segments before this one have come.
    next: u64,
    /// The last acknowledgement said so of those before this one,
    acknowledged: u64,
    /// and that the task had taken so many.
    told_taken: u64,
    taken: u64,
    echo_ns: Nanoseconds,
    /// Since when something waits for being acknowledged.
    owes_from_ns: Option<Nanoseconds>,
    /// What came before others that are missing,
    held: BTreeMap<u64, Packet>,
    /// and its runs: the first of each, and the first behind it.
    runs: BTreeMap<u64, u64>,
}

impl Receiver {
    pub(crate) fn new(first: Packet) -> Receiver {
        Receiver {
            first,
            next: 0,
            acknowledged: 0,
            told_taken: 0,
            taken: 0,
            echo_ns: 0,
            owes_from_ns: None,
            held: BTreeMap::new(),
            runs: BTreeMap::new(),
        }
    }

    /// Whether a stream from there is this one.
    pub(crate) fn is_from(&self, from: Peer) -> bool {
        self.first.from == from
    }

    /// When it has to acknowledge what has come and is not acknowledged.
    pub(crate) fn due_ns(&self) -> Option<Nanoseconds> {
        Some(self.owes_from_ns? + ACKNOWLEDGE_AFTER_NS)
    }

    /// A segment has come; `ready` gets all that is in order now.
    pub(crate) fn arrive(
        &mut self,
        packet: Packet,
        number: u64,
        stamp_ns: Nanoseconds,
        now_ns: Nanoseconds,
        mut ready: impl FnMut(Packet),
    ) -> Arrival {
        self.note(number, stamp_ns);
        if number != self.next {
            if number > self.next && self.held.insert(number, packet).is_none() {
                self.join(number);
            }
            return Arrival::Acknowledge { packet: self.acknowledgement(now_ns), is_heard: false };
        }
        let fills_gap = !self.held.is_empty();
        ready(packet);
        self.next += 1;
        self.runs.remove(&self.next);
        while let Some(held) = self.held.remove(&self.next) {
            ready(held);
            self.next += 1;
        }
        self.owes_from_ns.get_or_insert(now_ns);
        if fills_gap {
            Arrival::Acknowledge { packet: self.acknowledgement(now_ns), is_heard: true }
        } else {
            Arrival::InOrder
        }
    }

    /// The task has taken the next segment, this one; the acknowledgement that is due for it.
    pub(crate) fn take(&mut self, packet: Packet, now_ns: Nanoseconds) -> Option<Packet> {
        if let Kind::Segment { number, stamp_ns, .. } = packet.kind {
            self.note(number, stamp_ns);
        }
        self.taken += 1;
        let is_due = self.taken - self.told_taken >= TOGETHER || packet.is_last();
        is_due.then(|| self.acknowledge(self.acknowledged.max(self.taken), now_ns))
    }

    /// The acknowledgement of all that has come in order.
    pub(crate) fn acknowledgement(&mut self, now_ns: Nanoseconds) -> Packet {
        self.acknowledge(self.next, now_ns)
    }

    fn acknowledge(&mut self, next: u64, now_ns: Nanoseconds) -> Packet {
        (self.acknowledged, self.told_taken) = (next, self.taken);
        self.owes_from_ns = (next < self.next).then_some(now_ns);
        let told =
            Acknowledgement { next, taken: self.taken, echo_ns: self.echo_ns, held: self.lowest_runs(next) };
        self.first.control(Kind::Acknowledgement(told))
    }

    /// The next acknowledgement echoes the first segment that it acknowledges, or one sent again.
    fn note(&mut self, number: u64, stamp_ns: Nanoseconds) {
        if number <= self.acknowledged {
            self.echo_ns = self.echo_ns.max(stamp_ns);
        }
    }

    /// One more is held: it makes a run, or joins those beside it.
    fn join(&mut self, number: u64) {
        let end = self.runs.remove(&(number + 1)).unwrap_or(number + 1);
        match self.runs.range_mut(..number).next_back() {
            Some((_, before)) if *before == number => *before = end,
            _ => {
                self.runs.insert(number, end);
            }
        }
    }

    /// The lowest runs of what is held, seen from `next`: those that the sender has to fill first.
    fn lowest_runs(&self, next: u64) -> [Run; MOST_RUNS] {
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let mut lowest = [Run::default(); MOST_RUNS];
        for (run, (&from, &to)) in lowest.iter_mut().zip(&self.runs) {
            *run = Run { offset: short(from - next), length: short(to - from) };
        }
        lowest
    }
}
