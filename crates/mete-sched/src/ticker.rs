//! The beat of the polls: absolute deadlines, so that the time that a poll takes does not add up.

use std::time::Duration;

use mete_log::clock::monotonic_ns;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;

/// See the [module](self).
#[derive(Debug)]
pub struct Ticker {
    period_ns: u64,
    next_ns: u64,
    missed: u64,
}

impl Ticker {
    /// A beat of this period, which is at least a tenth of a millisecond.
    pub fn new(period: Duration) -> Ticker {
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX / 4).max(100_000);
        Ticker { period_ns, next_ns: monotonic_ns() + period_ns, missed: 0 }
    }

    /// Begins the beat again: the next beat is one period from now. The time until now is no part of the
    /// beat.
    pub fn begin_anew(&mut self) {
        self.next_ns = monotonic_ns() + self.period_ns;
    }

    /// The period.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    /// The number of beats that were left out because the work before them took too long.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Waits for the next beat, or for a signal. Returns whether the beat has come. Also returns (with
    /// `true`) at a moment of the monotonic clock, if that moment is before the beat. The beat itself does
    /// not move.
    pub fn wait_or(&mut self, moment_ns: Option<u64>) -> bool {
        let until_ns = self.next_ns.min(moment_ns.unwrap_or(u64::MAX));
        let until = Timespec {
            tv_sec: (until_ns / 1_000_000_000) as i64,
            tv_nsec: (until_ns % 1_000_000_000) as i64,
        };
        // The one error that a valid deadline can cause: a signal interrupted the wait.
        if clock_nanosleep_absolute(ClockId::Monotonic, &until).is_err() {
            return false;
        }
        if until_ns < self.next_ns {
            return true;
        }
        // Beats that have passed meanwhile are counted and left out: the next deadline lies ahead, in the old
        // rhythm.
        let late = monotonic_ns().saturating_sub(self.next_ns) / self.period_ns;
        self.missed += late;
        self.next_ns += (late + 1) * self.period_ns;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_16_a_moment_between_two_beats_is_waited_for_and_moves_no_beat() {
        let mut ticker = Ticker::new(Duration::from_secs(3600));
        let beat = ticker.next_ns;
        let moment = monotonic_ns() + 1_000_000;
        assert!(ticker.wait_or(Some(moment)));
        assert!(monotonic_ns() >= moment);
        assert_eq!((ticker.next_ns, ticker.missed()), (beat, 0));
    }

    #[test]
    fn log_16_beats_that_were_missed_are_counted_and_not_made_up_for() {
        let mut ticker = Ticker::new(Duration::from_millis(2));
        std::thread::sleep(Duration::from_millis(21));
        assert!(ticker.wait_or(None));
        assert!(ticker.missed() >= 9, "{}", ticker.missed());
        let before = monotonic_ns();
        assert!(ticker.wait_or(None));
        assert!(ticker.next_ns > before, "the next one lies ahead");
    }
}
