//! Rows have the processors' own counter for a time stamp, a trace has CLOCK_MONOTONIC: both are read at each pass, and
//! what happened between two passes lies on the straight line between.

use std::collections::VecDeque;

use mete_log::clock::{Anchor, Calibration};

/// Readings that are kept. What waits for its turn is younger than the second of them, but where its buffer has had no
/// room for longer: then it is on the first line, prolonged.
const KEPT: usize = 16;

/// A line with a corner at each reading. It never falls.
pub struct Clock {
    readings: VecDeque<Anchor>,
}

impl Clock {
    /// With a first reading.
    pub fn new() -> Clock {
        Clock { readings: VecDeque::from([Anchor::now()]) }
    }

    /// Reads both clocks; the monotonic one's reading.
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

    /// When the counter stood there, in nanoseconds. Before the first reading and behind the last, the line goes on.
    pub fn to_ns(&self, ticks: u64) -> u64 {
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
        let at = |ticks, ns| Anchor { ticks, ns };
        // The second stretch is slower: the monotonic clock is put right meanwhile.
        let readings = VecDeque::from([at(1000, 500), at(2000, 1000), at(3000, 1250)]);
        let clock = Clock { readings };
        let found = [0, 1000, 1500, 2000, 2400, 3000, 3400].map(|ticks| clock.to_ns(ticks));
        assert_eq!(found, [0, 500, 750, 1000, 1100, 1250, 1350]);
        let stamps: Vec<_> = (0..4000).map(|ticks| clock.to_ns(ticks)).collect();
        assert!(stamps.is_sorted());
        assert_eq!(Clock { readings: VecDeque::from([at(7, 9)]) }.to_ns(1000), 9);
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
