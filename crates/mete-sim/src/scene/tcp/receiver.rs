//! The receiver of a stream: it puts segments in order and acknowledges them.
//!
//! Every second segment is acknowledged when the task takes it, as under Linux, where a waiting task does
//! TCP's work itself. A segment that is not taken is acknowledged 40 ms after it came (RFC 1122, §4.2.3.2). A
//! segment that is out of order, or that has come before, is acknowledged at once (RFC 5681, §4.2).

use std::collections::BTreeMap;

use mete_policy::Nanoseconds;

use super::super::packet::{Acknowledgement, MOST_RUNS, Packet, PacketKind, Peer, Run};

/// How long an acknowledgement waits for a packet to travel with: Linux's shortest time (`TCP_DELACK_MIN`).
const ACKNOWLEDGE_AFTER_NS: Nanoseconds = Nanoseconds::new(40_000_000);
/// An acknowledgement is due after this number of segments has been taken.
const TOGETHER: u64 = 2;

/// What the arrival of a segment leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrival {
    /// It is the next in order and can be taken.
    InOrder,
    /// It has to be acknowledged at once.
    Acknowledge {
        /// The packet to acknowledge it with.
        packet: Packet,
        /// The segment, and perhaps others that were held, can be taken.
        is_heard: bool,
    },
}

/// One stream as its receiver sees it.
pub(crate) struct Receiver {
    /// The first packet of the stream, which says who talks to whom.
    first: Packet,
    /// All segments before this one have come.
    next: u64,
    /// All segments before this one have been reported as received.
    acknowledged: u64,
    /// How many segments have been reported as taken by the task.
    told_taken: u64,
    taken: u64,
    echo_ns: Nanoseconds,
    /// Since when something has waited to be acknowledged.
    owes_from_ns: Option<Nanoseconds>,
    /// Segments that came before others that are missing.
    held: BTreeMap<u64, Packet>,
    /// The runs of held segments: the first segment of each run, and the first behind it.
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
            echo_ns: Nanoseconds::ZERO,
            owes_from_ns: None,
            held: BTreeMap::new(),
            runs: BTreeMap::new(),
        }
    }

    /// Whether this is the stream from that sender.
    pub(crate) fn is_from(&self, from: Peer) -> bool {
        self.first.from == from
    }

    /// When it has to acknowledge what has come and is not acknowledged.
    pub(crate) fn due_ns(&self) -> Option<Nanoseconds> {
        Some(self.owes_from_ns? + ACKNOWLEDGE_AFTER_NS)
    }

    /// A segment has come. `ready` gets all segments that are in order now.
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
            // A segment that is held already makes no new run.
            if number > self.next && self.held.insert(number, packet).is_none() {
                self.join(number);
            }
            return Arrival::Acknowledge { packet: self.acknowledgement(now_ns), is_heard: false };
        }
        let fills_gap = !self.held.is_empty();
        ready(packet);
        self.next += 1;
        // The run that begins here is about to be handed out.
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

    /// The task has taken the next segment, this one. The result is the acknowledgement that is due for it.
    pub(crate) fn take(&mut self, packet: Packet, now_ns: Nanoseconds) -> Option<Packet> {
        if let PacketKind::Segment { number, stamp_ns, .. } = packet.kind {
            self.note(number, stamp_ns);
        }
        self.taken += 1;
        // The last segment is acknowledged at once, because no other follows for which to wait.
        let is_due = self.taken - self.told_taken >= TOGETHER || packet.is_last();
        // What an earlier acknowledgement has reported as received is not taken back.
        is_due.then(|| self.acknowledge(self.acknowledged.max(self.taken), now_ns))
    }

    /// The acknowledgement of all segments that have come in order.
    pub(crate) fn acknowledgement(&mut self, now_ns: Nanoseconds) -> Packet {
        self.acknowledge(self.next, now_ns)
    }

    fn acknowledge(&mut self, next: u64, now_ns: Nanoseconds) -> Packet {
        (self.acknowledged, self.told_taken) = (next, self.taken);
        // What has come and is not acknowledged waits from now on anew.
        self.owes_from_ns = (next < self.next).then_some(now_ns);
        let told =
            Acknowledgement { next, taken: self.taken, echo_ns: self.echo_ns, held: self.lowest_runs(next) };
        self.first.control(PacketKind::Acknowledgement(told))
    }

    /// The next acknowledgement echoes the first segment that it acknowledges, or a segment that was sent
    /// again.
    fn note(&mut self, number: u64, stamp_ns: Nanoseconds) {
        if number <= self.acknowledged {
            self.echo_ns = self.echo_ns.max(stamp_ns);
        }
    }

    /// One more segment is held: it makes a run of its own, or joins the runs beside it.
    fn join(&mut self, number: u64) {
        // If a run begins right behind it, the two are joined.
        let end = self.runs.remove(&(number + 1)).unwrap_or(number + 1);
        match self.runs.range_mut(..number).next_back() {
            Some((_, before)) if *before == number => *before = end,
            _ => {
                self.runs.insert(number, end);
            }
        }
    }

    /// The lowest runs of held segments, seen from `next`: those whose gaps the sender has to fill first.
    fn lowest_runs(&self, next: u64) -> [Run; MOST_RUNS] {
        let mut lowest = [Run::default(); MOST_RUNS];
        for (run, (&from, &to)) in lowest.iter_mut().zip(&self.runs) {
            *run = Run { offset: saturated(from - next), length: saturated(to - from) };
        }
        lowest
    }
}

/// A count as acknowledgements carry it.
fn saturated(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
