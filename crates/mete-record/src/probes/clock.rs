//! Rows have the processors' own counter for a time stamp, a trace has CLOCK_MONOTONIC. Both clocks are read
//! at each pass, and time stamps between two passes lie on the straight line between the two readings.

use std::collections::VecDeque;

use mete_log::Ticks;
use mete_log::clock::{Anchor, Calibration};

/// How many readings are kept. A row that waits in a queue is younger than the second of them, unless its
/// buffer has had no room for longer. Then its time lies on the first line, extended backwards.
const KEPT: usize = 16;

/// A line with a corner at each reading. It never decreases.
pub struct Clock {
    readings: VecDeque<Anchor>,
}

impl Clock {
    /// A clock with its first reading.
    pub fn new() -> Clock {
        Clock { readings: VecDeque::from([Anchor::now()]) }
    }

    /// Reads both clocks, and returns the monotonic one's reading.
    pub fn read(&mut self) -> u64 {
        let now = Anchor::now();
        if self.readings.back().is_none_or(|last| now.ticks > last.ticks && now.ns > last.ns) {
            self.readings.push_back(now);
        }
        if self.readings.len() > KEPT {
            self.readings.pop_front();
        }
        now.ns
    }

    /// The time at which the counter had this value, in nanoseconds. Before the first reading and after the
    /// last one, the line is extended.
    pub fn to_ns(&self, ticks: Ticks) -> u64 {
        let later = self.readings.partition_point(|reading| reading.ticks <= ticks);
        let last = later.clamp(1, self.readings.len().max(2) - 1);
        let ends = self.readings.get(last - 1).zip(self.readings.get(last));
        let line = ends.and_then(|(first, last)| Calibration::between(*first, *last));
        line.map_or_else(|| self.readings.back().map_or(0, |only| only.ns), |line| line.to_ns(ticks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_6_time_stamps_of_rows_lie_between_the_readings_around_them_and_never_fall() {
        let at = |ticks, ns| Anchor { ticks: Ticks::new(ticks), ns };
        // The second stretch is slower: the kernel corrects the monotonic clock meanwhile.
        let readings = VecDeque::from([at(1000, 500), at(2000, 1000), at(3000, 1250)]);
        let clock = Clock { readings };
        let found = [0, 1000, 1500, 2000, 2400, 3000, 3400].map(|ticks| clock.to_ns(Ticks::new(ticks)));
        assert_eq!(found, [0, 500, 750, 1000, 1100, 1250, 1350]);
        let stamps: Vec<_> = (0..4000).map(|ticks| clock.to_ns(Ticks::new(ticks))).collect();
        assert!(stamps.is_sorted());
        assert_eq!(Clock { readings: VecDeque::from([at(7, 9)]) }.to_ns(Ticks::new(1000)), 9);
    }

    #[test]
    fn klog_6_old_readings_are_let_go() {
        let mut clock = Clock::new();
        for _ in 0..100 {
            clock.read();
            std::thread::sleep(std::time::Duration::from_micros(10));
        }
        assert_eq!(clock.readings.len(), KEPT);
    }
}
