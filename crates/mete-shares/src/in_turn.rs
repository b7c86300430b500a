//! Things that are looked at again and again, a few at a time.

use std::ops::Range;
use std::time::{Duration, Instant};

/// Has each of some things looked at once in a period. Of very many, no more than some are looked at in a period.
#[derive(Debug)]
pub(crate) struct InTurn {
    period: Duration,
    most: usize,
    /// Up to when those that were due have been looked at.
    until: Instant,
    next: usize,
}

impl InTurn {
    pub fn new(period: Duration, most: usize) -> InTurn {
        InTurn { period, most, until: Instant::now(), next: 0 }
    }

    /// The places of those that are due now, of so many things. There are as many as before, as a rule.
    pub fn due(&mut self, number: usize) -> Range<usize> {
        self.due_at(number, Instant::now())
    }

    fn due_at(&mut self, number: usize, now: Instant) -> Range<usize> {
        let begin = if self.next < number { self.next } else { 0 };
        // Up to the last one: those behind it come with the next call.
        let most = (number - begin).min(self.most);
        let each = self.period / number.clamp(1, self.most).try_into().unwrap_or(u32::MAX);
        let passed = now.saturating_duration_since(self.until);
        let due = passed.as_nanos() / each.as_nanos().max(1);
        let count = usize::try_from(due).unwrap_or(most).min(most);
        // What was not looked at in time is not made up for.
        self.until = if count == most { now } else { self.until + each * count as u32 };
        self.next = begin + count;
        begin..self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(1);
    const MOST: usize = 64;

    /// How often each of some things was due in calls with this pause between them.
    fn counts(number: usize, pause: Duration, calls: u32) -> Vec<u32> {
        let mut turns = InTurn::new(PERIOD, MOST);
        let begin = turns.until;
        let mut counts = vec![0; number];
        for nth in 1..=calls {
            let due = turns.due_at(number, begin + pause * nth);
            assert!(due.len() <= MOST);
            due.for_each(|nth| counts[nth] += 1);
        }
        counts
    }

    #[test]
    fn vtrr_7_each_of_few_is_due_once_in_a_period() {
        for number in [1, 2, 3, 10, 64] {
            let counts = counts(number, Duration::from_millis(20), 500);
            assert!(counts.iter().all(|count| (9..=10).contains(count)), "{number}: {counts:?}");
        }
    }

    #[test]
    fn vtrr_7_of_very_many_some_are_due_in_each_period() {
        for pause in [1, 20, 100, 1000] {
            let calls = 160_000 / pause;
            let counts = counts(1000, Duration::from_millis(pause), calls as u32);
            assert!(counts.iter().all(|count| (9..=11).contains(count)), "{pause}: {counts:?}");
        }
    }

    #[test]
    fn vtrr_7_after_a_long_pause_each_is_due_once() {
        let mut turns = InTurn::new(PERIOD, MOST);
        let later = turns.until + Duration::from_secs(100);
        assert_eq!(turns.due_at(3, later), 0..3);
        assert_eq!(turns.due_at(3, later), 0..0);
        assert_eq!(turns.due_at(0, later), 0..0);
    }
}
