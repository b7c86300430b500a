//! The sender of a stream: what may be under way, and what is sent again.
//!
//! It begins with 3 segments (RFC 3390, for segments of 1460 bytes). It adds one for each acknowledgement up
//! to the threshold, and from then on one for each round trip (RFC 5681, §3.1), but never has more under way
//! than the receiver has room for. A segment that three others have overtaken is sent again, and the window
//! is halved once for all that was under way then (RFC 6675). When the timer runs out, every segment that has
//! not come counts as lost and the window is one segment. If an acknowledgement then shows that the first
//! segment was only slow, the sender takes all that back (RFC 3522, RFC 4015), as Linux does.

use std::collections::VecDeque;

use mete_policy::Nanoseconds;

use super::super::packet::{Acknowledgement, MOST_RUNS, Packet, PacketKind, Peer, Run};
use super::scoreboard::Scoreboard;
use super::timer::Timer;

/// How many segments are sent at first (RFC 3390).
const FIRST_SEGMENTS: u64 = 3;
/// There is room for this number of segments from the beginning; a longer window allocates when it needs
/// more.
const ROOM: u64 = 1024;
/// The window is never halved to less (RFC 5681, §3.1).
const LEAST_SEGMENTS: u64 = 2;

/// Something to send.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// When it was asked for; every segment carries this time.
    asked_ns: Nanoseconds,
    left_bytes: u64,
}

/// What a segment carries.
#[derive(Clone, Copy, Debug)]
struct Segment {
    bytes: u64,
    asked_ns: Nanoseconds,
    is_last: bool,
}

/// Why segments are sent again. It holds until all that was under way at its beginning is acknowledged.
#[derive(Clone, Copy, Debug)]
enum Recovery {
    /// Later segments have come before them.
    Overtaken { until: u64 },
    /// No acknowledgement came for too long, since `since_ns`. `allowed` and `threshold` are what held
    /// before.
    Silence { until: u64, since_ns: Nanoseconds, allowed: u64, threshold: u64 },
}

/// What a sender had to do in addition to sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// How many segments were sent again.
    pub sent_again: u64,
    /// How often the timer ran out.
    pub ran_out: u64,
    /// How often the timer ran out although the segment was only slow.
    pub in_vain: u64,
}

impl Troubles {
    pub(crate) fn add(&mut self, other: Troubles) {
        self.sent_again += other.sent_again;
        self.ran_out += other.ran_out;
        self.in_vain += other.in_vain;
    }
}

/// The sender of one stream.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    to: Peer,
    answers: VecDeque<Answer>,
    board: Scoreboard<Segment>,
    /// How many segments the receiver has room for.
    window: u64,
    /// The first segment that the receiver has no room for.
    edge: u64,
    /// How many segments may be under way.
    allowed: u64,
    /// From this number on, `allowed` grows by one a round trip.
    threshold: u64,
    /// Acknowledgements since `allowed` last grew beyond the threshold.
    grown: u64,
    recovery: Option<Recovery>,
    timer: Timer,
    /// When its timer runs out.
    pub(crate) due_ns: Option<Nanoseconds>,
    pub(crate) troubles: Troubles,
}

impl Sender {
    /// A sender to a receiver with room for `window` segments. The window is at least 2, because every second
    /// segment is acknowledged. The timer adds at least `least_ns` to the round trip.
    pub(crate) fn new(to: Peer, window: u64, least_ns: Nanoseconds) -> Sender {
        let window = window.max(LEAST_SEGMENTS);
        Sender {
            to,
            answers: VecDeque::new(),
            board: Scoreboard::new(window.min(ROOM) as usize),
            window,
            edge: window,
            allowed: FIRST_SEGMENTS.min(window),
            threshold: window,
            grown: 0,
            recovery: None,
            timer: Timer::new(least_ns),
            due_ns: None,
            troubles: Troubles::default(),
        }
    }

    /// Whether it sends to that port.
    pub(crate) fn is_to(&self, to: Peer) -> bool {
        self.to == to
    }

    /// Sends this number of bytes, at least 1, after all others. After a pause it begins slowly again, as a
    /// new connection does.
    pub(crate) fn answer(&mut self, bytes: u64, asked_ns: Nanoseconds) {
        if self.answers.is_empty() && self.board.is_empty() {
            (self.allowed, self.threshold) = (FIRST_SEGMENTS.min(self.window), self.window);
            self.grown = 0;
        }
        self.answers.push_back(Answer { asked_ns, left_bytes: bytes.max(1) });
    }

    /// The next segment, of at most `segment_bytes`, if one may be sent now.
    pub(crate) fn segment(&mut self, from: Peer, segment_bytes: u64, now_ns: Nanoseconds) -> Option<Packet> {
        if self.board.under_way() >= self.allowed {
            return None;
        }
        // A lost segment comes before a new one: the receiver waits for it.
        let (number, segment) = self.lost_segment().or_else(|| self.new_segment(segment_bytes))?;
        self.due_ns.get_or_insert(now_ns.saturating_add(self.timer.wait_ns()));
        let Segment { bytes, asked_ns, is_last } = segment;
        let kind = PacketKind::Segment { number, stamp_ns: now_ns, is_last };
        Some(Packet { from, to: self.to, bytes, sent_ns: asked_ns, kind })
    }

    fn lost_segment(&mut self) -> Option<(u64, Segment)> {
        let again = self.board.send_again()?;
        self.troubles.sent_again += 1;
        Some(again)
    }

    fn new_segment(&mut self, segment_bytes: u64) -> Option<(u64, Segment)> {
        let number = self.board.end();
        // Beyond the edge the receiver has no room.
        let answer = self.answers.front_mut().filter(|_| number < self.edge)?;
        let bytes = answer.left_bytes.min(segment_bytes.max(1));
        answer.left_bytes -= bytes;
        let segment = Segment { bytes, asked_ns: answer.asked_ns, is_last: answer.left_bytes == 0 };
        if segment.is_last {
            self.answers.pop_front();
        }
        self.board.send(segment);
        Some((number, segment))
    }

    /// An acknowledgement has come.
    pub(crate) fn acknowledged(&mut self, told: Acknowledgement, now_ns: Nanoseconds) {
        // Never back, because an older acknowledgement may come later.
        self.edge = self.edge.max(told.taken.saturating_add(self.window));
        // An acknowledgement that is older than the board, or beyond it, says nothing.
        if !(self.board.first()..=self.board.end()).contains(&told.next) {
            return;
        }
        if told.next > self.board.first() {
            self.go_on(told.next, told.echo_ns, now_ns);
        }
        self.heed(told.next, &told.held);
    }

    /// Does nothing unless the timer has run out.
    pub(crate) fn look_at_timer(&mut self, now_ns: Nanoseconds) {
        if self.due_ns.is_none_or(|due_ns| due_ns > now_ns) {
            return;
        }
        self.troubles.ran_out += 1;
        self.timer.ran_out();
        let until = self.board.end();
        self.recovery = Some(match self.recovery {
            // A timer that runs out again keeps what held before the first time, so that all of it can be
            // taken back.
            Some(Recovery::Silence { since_ns, allowed, threshold, .. }) => {
                Recovery::Silence { until, since_ns, allowed, threshold }
            }
            _ => {
                let (allowed, threshold) = (self.allowed, self.threshold);
                self.threshold = (self.board.under_way() / 2).max(LEAST_SEGMENTS);
                Recovery::Silence { until, since_ns: now_ns, allowed, threshold }
            }
        });
        (self.allowed, self.grown) = (1, 0);
        // Nothing counts as under way now, so the one segment that the window allows may go.
        self.board.lose_all();
        self.due_ns = Some(now_ns.saturating_add(self.timer.wait_ns()));
    }

    /// All segments before `next` have come.
    fn go_on(&mut self, next: u64, echo_ns: Nanoseconds, now_ns: Nanoseconds) {
        self.board.acknowledge(next);
        self.timer.sample(now_ns.saturating_sub(echo_ns));
        self.due_ns = (!self.board.is_empty()).then(|| now_ns.saturating_add(self.timer.wait_ns()));
        match self.recovery {
            // The echo is from before the silence: the first transmission has arrived, so the timer ran out
            // too early.
            Some(Recovery::Silence { since_ns, allowed, threshold, .. }) if echo_ns < since_ns => {
                self.troubles.in_vain += 1;
                (self.allowed, self.threshold, self.recovery) = (allowed, threshold, None);
                self.board.find_all();
            }
            Some(Recovery::Overtaken { until } | Recovery::Silence { until, .. }) if next >= until => {
                self.recovery = None;
                self.grow();
            }
            // The window stays as it is until the recovery is over.
            Some(Recovery::Overtaken { .. }) => {}
            Some(Recovery::Silence { .. }) | None => self.grow(),
        }
    }

    /// More segments may be under way (RFC 5681, §3.1).
    fn grow(&mut self) {
        if self.allowed >= self.threshold {
            // Beyond the threshold it takes a window of acknowledgements to grow by one.
            self.grown += 1;
            if self.grown < self.allowed {
                return;
            }
            self.grown = 0;
        }
        self.allowed = (self.allowed + 1).min(self.window);
    }

    /// Some segments have come before others.
    fn heed(&mut self, next: u64, held: &[Run; MOST_RUNS]) {
        self.board.hold(next, held);
        // Once in a recovery: what is lost until its end has the same cause.
        if self.board.find_lost() && self.recovery.is_none() {
            self.threshold = (self.allowed / 2).max(LEAST_SEGMENTS);
            (self.allowed, self.grown) = (self.threshold, 0);
            self.recovery = Some(Recovery::Overtaken { until: self.board.end() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mete_policy::ClientId;

    const MS: Nanoseconds = Nanoseconds::new(1_000_000);
    const HERE: Peer = Peer::Remote(0);
    const THERE: Peer = Peer::Client { client: ClientId::new(1), port: 7 };

    /// A sender that has more to send than any test takes.
    fn sender(window: u64) -> Sender {
        let mut sender = Sender::new(THERE, window, 200 * MS);
        sender.answer(u64::MAX, Nanoseconds::ZERO);
        sender
    }

    /// Sends all that may be sent, and returns the segments' numbers.
    fn send(sender: &mut Sender, now_ns: Nanoseconds) -> Vec<u64> {
        let packets = std::iter::from_fn(|| sender.segment(HERE, 1460, now_ns));
        packets.map(number).collect()
    }

    fn number(packet: Packet) -> u64 {
        match packet.kind {
            PacketKind::Segment { number, .. } => number,
            other => panic!("{other:?}"),
        }
    }

    /// The receiver has every segment before `next` and holds these runs; its task has taken all that it can.
    fn told(next: u64, echo_ns: Nanoseconds, held: &[(u32, u32)]) -> Acknowledgement {
        let mut runs = [Run::default(); MOST_RUNS];
        for (run, &(offset, length)) in runs.iter_mut().zip(held) {
            *run = Run { offset, length };
        }
        Acknowledgement { next, taken: next, echo_ns, held: runs }
    }

    #[test]
    fn a_window_grows_by_one_an_acknowledgement_up_to_what_the_receiver_has_room_for() {
        let mut sender = sender(5);
        assert_eq!(send(&mut sender, Nanoseconds::ZERO), [0, 1, 2]);
        sender.acknowledged(told(2, Nanoseconds::ZERO, &[]), MS);
        assert_eq!(send(&mut sender, MS), [3, 4, 5]);
        sender.acknowledged(told(4, MS, &[]), 2 * MS);
        sender.acknowledged(told(6, MS, &[]), 2 * MS);
        assert_eq!(send(&mut sender, 2 * MS), [6, 7, 8, 9, 10]);
        sender.acknowledged(Acknowledgement { next: 8, taken: 6, ..told(8, 2 * MS, &[]) }, 3 * MS);
        assert_eq!(
            send(&mut sender, 3 * MS),
            [] as [u64; 0],
            "two have come for which there is no room again"
        );
    }

    #[test]
    fn what_three_have_overtaken_is_sent_again_and_the_window_is_halved_once() {
        let mut sender = sender(100);
        sender.allowed = 8;
        assert_eq!(send(&mut sender, Nanoseconds::ZERO).len(), 8);
        sender.acknowledged(told(0, Nanoseconds::ZERO, &[(1, 2)]), MS);
        assert_eq!(send(&mut sender, MS), [8, 9], "two that came late are under way no more");
        sender.acknowledged(told(0, Nanoseconds::ZERO, &[(1, 3)]), MS);
        assert_eq!((sender.allowed, send(&mut sender, MS)), (4, vec![]), "six are under way");
        sender.acknowledged(told(0, Nanoseconds::ZERO, &[(1, 5)]), MS);
        assert_eq!(send(&mut sender, MS), [] as [u64; 0]);
        sender.acknowledged(told(0, Nanoseconds::ZERO, &[(1, 6)]), MS);
        assert_eq!(send(&mut sender, MS), [0]);
        sender.acknowledged(told(7, MS, &[]), 2 * MS);
        assert_eq!(sender.allowed, 4, "until all that was under way is acknowledged");
        sender.acknowledged(told(10, MS, &[]), 2 * MS);
        assert_eq!((sender.allowed, sender.troubles.sent_again), (4, 1));
    }

    #[test]
    fn after_silence_it_begins_with_one_and_takes_that_back_if_it_was_needless() {
        for (echo_ns, in_vain, allowed) in [(Nanoseconds::ZERO, 1, 8), (3_001 * MS, 0, 2)] {
            let mut sender = sender(100);
            sender.allowed = 8;
            assert_eq!(send(&mut sender, Nanoseconds::ZERO).len(), 8);
            sender.look_at_timer(2_999 * MS);
            assert_eq!(sender.troubles.ran_out, 0, "nothing is known of the round trip: 3 s");
            sender.look_at_timer(3_000 * MS);
            assert_eq!((send(&mut sender, 3_001 * MS), sender.due_ns), (vec![0], Some(9_000 * MS)));
            sender.acknowledged(told(1, echo_ns, &[]), 3_002 * MS);
            assert_eq!((sender.troubles.in_vain, sender.allowed), (in_vain, allowed));
            let goes = if in_vain == 1 { vec![8] } else { vec![1, 2] };
            assert_eq!(send(&mut sender, 3_002 * MS), goes);
        }
    }

    #[test]
    fn an_answer_after_a_pause_begins_slowly_and_a_senseless_acknowledgement_is_ignored() {
        let mut sender = Sender::new(THERE, 44, 200 * MS);
        sender.answer(1460 * 10, Nanoseconds::ZERO);
        let mut next = 0;
        while next < 10 {
            next += send(&mut sender, Nanoseconds::ZERO).len() as u64;
            sender.acknowledged(told(next, Nanoseconds::ZERO, &[]), MS);
        }
        assert!(sender.allowed > FIRST_SEGMENTS && sender.due_ns.is_none());
        sender.answer(0, 5 * MS);
        assert_eq!(sender.allowed, FIRST_SEGMENTS);
        sender.acknowledged(told(u64::MAX, Nanoseconds::ZERO, &[(u32::MAX, u32::MAX)]), 5 * MS);
        sender.acknowledged(told(3, Nanoseconds::ZERO, &[(0, 1)]), 5 * MS);
        let last = sender.segment(HERE, 1460, 5 * MS).expect("one goes");
        assert_eq!((last.bytes, last.is_last(), last.sent_ns), (1, true, 5 * MS));
    }
}
