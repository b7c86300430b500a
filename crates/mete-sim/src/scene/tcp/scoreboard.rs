//! What became of each segment under way, as far as its sender knows (RFC 6675).

use std::collections::VecDeque;
use std::ops::Range;

use super::super::packet::{MOST_RUNS, Run};

/// A segment counts as lost when this number of segments above it have come (RFC 6675, §4: `DupThresh`).
const PROOFS: usize = 3;

/// What its sender knows of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentState {
    /// It is under way, for the first time or again.
    Sent,
    /// It has come before others that have not.
    Held,
    /// It is no longer under way.
    Lost,
}

/// The segments from the first that is not acknowledged to the last that was sent.
///
/// The work for an acknowledgement grows with what is new in it, not with what is under way, because a window
/// may be long.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard<S> {
    segments: VecDeque<(S, SegmentState)>,
    /// The number of the first segment.
    first: u64,
    held: u64,
    lost: u64,
    /// Losses have been looked for up to here; no segment before it is judged again.
    judged: u64,
    /// No segment before it is lost.
    maybe_lost: u64,
    /// The runs that the last acknowledgement named, as segment numbers.
    known: [Range<u64>; MOST_RUNS],
    /// The highest segments that are held, highest first, counted from 1; 0: none.
    highest: [u64; PROOFS],
}

impl<S: Copy> Scoreboard<S> {
    /// A scoreboard with room for this number of segments.
    pub(super) fn new(segments: usize) -> Scoreboard<S> {
        Scoreboard {
            segments: VecDeque::with_capacity(segments),
            first: 0,
            held: 0,
            lost: 0,
            judged: 0,
            maybe_lost: 0,
            known: [const { 0..0 }; MOST_RUNS],
            highest: [0; PROOFS],
        }
    }

    /// The number of the first segment that is not acknowledged.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The number of the next new segment.
    pub(super) fn end(&self) -> u64 {
        self.first + self.segments.len() as u64
    }

    /// How many segments are neither acknowledged nor given up.
    pub(super) fn under_way(&self) -> u64 {
        self.segments.len() as u64 - self.held - self.lost
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// A new segment is sent.
    pub(super) fn send(&mut self, segment: S) {
        self.segments.push_back((segment, SegmentState::Sent));
    }

    /// The first lost segment is sent again. The answer is its number and what it carries.
    pub(super) fn send_again(&mut self) -> Option<(u64, S)> {
        if self.lost == 0 {
            return None;
        }
        for number in self.maybe_lost.max(self.first)..self.end() {
            let (segment, state) = self.at(number)?;
            if *state == SegmentState::Lost {
                let segment = *segment;
                *state = SegmentState::Sent;
                self.lost -= 1;
                self.maybe_lost = number + 1;
                return Some((number, segment));
            }
        }
        None
    }

    /// All segments before `next` have come.
    pub(super) fn acknowledge(&mut self, next: u64) {
        while self.first < next {
            match self.segments.pop_front() {
                Some((_, SegmentState::Held)) => self.held -= 1,
                Some((_, SegmentState::Lost)) => self.lost -= 1,
                Some((_, SegmentState::Sent)) => {}
                None => return,
            }
            self.first += 1;
        }
    }

    /// These segments have come, although the segment `next` that the acknowledgement asks for has not.
    pub(super) fn hold(&mut self, next: u64, runs: &[Run; MOST_RUNS]) {
        let named = runs.map(|run| {
            let from = next.saturating_add(u64::from(run.offset));
            // A receiver cannot hold what was not sent: the run ends with the board at the latest.
            from..from.saturating_add(u64::from(run.length)).min(self.end())
        });
        let known = std::mem::replace(&mut self.known, named.clone());
        for run in named {
            // A run that begins in a known one was counted up to that one's end.
            let begins_known = known.iter().find(|old| old.contains(&run.start));
            let new = begins_known.map_or(run.start, |old| old.end)..run.end;
            new.for_each(|number| self.hold_one(number));
        }
    }

    fn hold_one(&mut self, number: u64) {
        let Some((_, state)) = self.at(number) else { return };
        match std::mem::replace(state, SegmentState::Held) {
            SegmentState::Held => return,
            SegmentState::Lost => self.lost -= 1,
            SegmentState::Sent => {}
        }
        self.held += 1;
        // The place of a number that is not yet among the highest; none if it is below them all.
        let place = self.highest.iter().position(|&other| other < number + 1);
        if let Some(place) = place {
            self.highest[place..].rotate_right(1);
            self.highest[place] = number + 1;
        }
    }

    /// Gives up the segments that enough others have overtaken. The result says whether any of them was not
    /// known to be lost.
    pub(super) fn find_lost(&mut self) -> bool {
        // The entries count from 1, so that 0 means that fewer than [`PROOFS`] have come.
        let below = self.highest[PROOFS - 1].saturating_sub(1);
        let before = self.lost;
        for number in self.judged.max(self.first)..below.min(self.end()) {
            self.give_up(number);
        }
        self.judged = self.judged.max(below);
        self.lost > before
    }

    /// Gives up all segments that have not come.
    pub(super) fn lose_all(&mut self) {
        (self.first..self.end()).for_each(|number| self.give_up(number));
        self.judged = self.end();
    }

    /// The segments that were given up are under way after all.
    pub(super) fn find_all(&mut self) {
        for (_, state) in &mut self.segments {
            if *state == SegmentState::Lost {
                *state = SegmentState::Sent;
            }
        }
        // They may be given up again, so all are judged anew.
        (self.lost, self.judged) = (0, self.first);
    }

    fn give_up(&mut self, number: u64) {
        // A segment that has come, or is given up already, stays what it is.
        let Some((_, state @ SegmentState::Sent)) = self.at(number) else { return };
        *state = SegmentState::Lost;
        self.lost += 1;
        self.maybe_lost = self.maybe_lost.min(number);
    }

    fn at(&mut self, number: u64) -> Option<&mut (S, SegmentState)> {
        self.segments.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(named: &[(u32, u32)]) -> [Run; MOST_RUNS] {
        let mut runs = [Run::default(); MOST_RUNS];
        for (run, &(offset, length)) in runs.iter_mut().zip(named) {
            *run = Run { offset, length };
        }
        runs
    }

    fn sent(count: u64) -> Scoreboard<u64> {
        let mut board = Scoreboard::new(0);
        (0..count).for_each(|number| board.send(number));
        board
    }

    #[test]
    fn segments_are_lost_when_three_above_them_have_come_and_are_sent_again_once() {
        let mut board = sent(10);
        board.hold(board.first(), &runs(&[(2, 2)]));
        assert!(!board.find_lost(), "two are no proof");
        board.hold(board.first(), &runs(&[(2, 2), (6, 1)]));
        assert!(board.find_lost());
        assert_eq!((board.under_way(), board.end()), (5, 10), "three came, 0 and 1 are lost");
        assert_eq!((board.send_again(), board.send_again()), (Some((0, 0)), Some((1, 1))));
        assert_eq!((board.send_again(), board.under_way()), (None, 7));
        board.hold(board.first(), &runs(&[(6, 3)]));
        assert!(board.find_lost(), "4 and 5 now; those sent again are not judged by what came before");
        board.acknowledge(4);
        assert_eq!((board.send_again(), board.end()), (Some((4, 4)), 10));
    }

    #[test]
    fn what_is_given_up_can_be_found_again() {
        let mut board = sent(4);
        board.hold(board.first(), &runs(&[(1, 1)]));
        board.lose_all();
        assert_eq!((board.under_way(), board.send_again()), (0, Some((0, 0))));
        board.find_all();
        assert_eq!((board.under_way(), board.send_again()), (3, None));
        board.acknowledge(4);
        assert!(board.is_empty());
        assert_eq!(board.under_way(), 0);
    }

    #[test]
    fn runs_outside_of_what_was_sent_are_ignored() {
        let mut board = sent(2);
        board.hold(board.first(), &runs(&[(1, u32::MAX), (u32::MAX, u32::MAX)]));
        assert_eq!(board.under_way(), 1);
        board.acknowledge(9);
        assert_eq!((board.first(), board.under_way(), board.find_lost()), (2, 0, false));
    }
}
