//! What became of each segment that is under way, as far as its sender knows (RFC 6675).

use std::collections::VecDeque;

use super::Run;

/// A segment counts as lost when so many above it have come (RFC 6675, §4: `DupThresh`).
const PROOFS: usize = 3;

/// What its sender knows of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is under way, for the first time or again.
    Sent,
    /// It has come, before others that have not.
    Held,
    /// It is not under way any more.
    Lost,
}

/// The segments from the first that is not acknowledged to the last that was sent.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard<S> {
    segments: VecDeque<(S, State)>,
    held: u64,
    lost: u64,
    /// Below this place losses have been looked for, and nothing there has been sent again since.
    judged: usize,
}

impl<S: Copy> Scoreboard<S> {
    /// With room for so many.
    pub(super) fn new(segments: usize) -> Scoreboard<S> {
        Scoreboard { segments: VecDeque::with_capacity(segments), held: 0, lost: 0, judged: 0 }
    }

    /// How many are neither acknowledged nor given up.
    pub(super) fn under_way(&self) -> u64 {
        self.len() - self.held - self.lost
    }

    /// How many are not acknowledged in order.
    pub(super) fn len(&self) -> u64 {
        self.segments.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// A new one is sent.
    pub(super) fn send(&mut self, segment: S) {
        self.segments.push_back((segment, State::Sent));
    }

    /// The first that was lost is sent again: its place, and what it is.
    pub(super) fn send_again(&mut self) -> Option<(u64, S)> {
        if self.lost == 0 {
            return None;
        }
        let at = self.segments.iter().position(|(_, state)| *state == State::Lost)?;
        self.lost -= 1;
        self.segments[at].1 = State::Sent;
        Some((at as u64, self.segments[at].0))
    }

    /// So many have come in order.
    pub(super) fn acknowledge(&mut self, count: u64) {
        for _ in 0..count {
            match self.segments.pop_front() {
                Some((_, State::Held)) => self.held -= 1,
                Some((_, State::Lost)) => self.lost -= 1,
                Some((_, State::Sent)) | None => {}
            }
        }
        self.judged = self.judged.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
    }

    /// These have come before the first has.
    pub(super) fn hold(&mut self, runs: &[Run]) {
        for run in runs {
            let first = run.offset as usize;
            for (_, state) in self.segments.iter_mut().skip(first).take(run.length as usize) {
                match std::mem::replace(state, State::Held) {
                    State::Held => continue,
                    State::Lost => self.lost -= 1,
                    State::Sent => {}
                }
                self.held += 1;
            }
        }
    }

    /// Gives up those that enough others have overtaken; whether there are any that were not known.
    pub(super) fn find_lost(&mut self) -> bool {
        if self.held < PROOFS as u64 {
            return false;
        }
        let held = (0..self.segments.len()).rev().filter(|&at| self.segments[at].1 == State::Held);
        let Some(below) = held.take(PROOFS).nth(PROOFS - 1) else { return false };
        let before = self.lost;
        for at in self.judged..below {
            self.give_up(at);
        }
        self.judged = self.judged.max(below);
        self.lost > before
    }

    /// Gives up all that have not come.
    pub(super) fn lose_all(&mut self) {
        (0..self.segments.len()).for_each(|at| self.give_up(at));
        self.judged = self.segments.len();
    }

    /// Those that were given up are under way after all.
    pub(super) fn find_all(&mut self) {
        for (_, state) in &mut self.segments {
            if *state == State::Lost {
                *state = State::Sent;
            }
        }
        (self.lost, self.judged) = (0, 0);
    }

    fn give_up(&mut self, at: usize) {
        if self.segments[at].1 == State::Sent {
            self.segments[at].1 = State::Lost;
            self.lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(runs: &[(u32, u32)]) -> Vec<Run> {
        runs.iter().map(|&(offset, length)| Run { offset, length }).collect()
    }

    fn sent(count: u64) -> Scoreboard<u64> {
        let mut board = Scoreboard::new(0);
        (0..count).for_each(|number| board.send(number));
        board
    }

    #[test]
    fn segments_are_lost_when_three_above_them_have_come_and_are_sent_again_once() {
        let mut board = sent(10);
        board.hold(&runs(&[(2, 2)]));
        assert!(!board.find_lost(), "two are no proof");
        board.hold(&runs(&[(2, 2), (6, 1)]));
        assert!(board.find_lost());
        assert_eq!((board.under_way(), board.len()), (5, 10), "three came, 0 and 1 are lost");
        assert_eq!((board.send_again(), board.send_again()), (Some((0, 0)), Some((1, 1))));
        assert_eq!((board.send_again(), board.under_way()), (None, 7));
        board.hold(&runs(&[(6, 3)]));
        assert!(board.find_lost(), "4 and 5 now; those sent again are not judged by what came before");
        board.acknowledge(4);
        assert_eq!((board.send_again(), board.len()), (Some((0, 4)), 6));
    }

    #[test]
    fn what_is_given_up_can_be_found_again() {
        let mut board = sent(4);
        board.hold(&runs(&[(1, 1)]));
        board.lose_all();
        assert_eq!((board.under_way(), board.send_again()), (0, Some((0, 0))));
        board.find_all();
        assert_eq!((board.under_way(), board.send_again()), (3, None));
        board.acknowledge(4);
        assert!(board.is_empty());
        assert_eq!(board.under_way(), 0);
    }

    #[test]
    fn runs_outside_of_what_was_sent_are_nothing() {
        let mut board = sent(2);
        board.hold(&runs(&[(1, u32::MAX), (u32::MAX, u32::MAX)]));
        assert_eq!(board.under_way(), 1);
        board.acknowledge(9);
        assert_eq!((board.len(), board.under_way(), board.find_lost()), (0, 0, false));
    }
}
