//! When a flush thread looks at its buffer again if no producer calls it.

use std::time::Duration;

/// The shortest sleep. It also limits how much of its processor a flush thread at a real-time priority can
/// take from all other threads: it sleeps this long after each pass over the buffer.
pub const SHORTEST: Duration = Duration::from_millis(1);
/// The longest sleep. Producers that cannot call fill a buffer of 4 MiB in this time only at 200 MB/s.
pub const LONGEST: Duration = Duration::from_millis(20);

/// Follows the rate at which a buffer fills.
#[derive(Debug)]
pub struct Pace {
    capacity: u64,
    /// The rate since the previous look, in bytes a second.
    rate: u64,
}

impl Pace {
    /// For a buffer of `capacity` bytes.
    pub fn new(capacity: u32) -> Pace {
        Pace { capacity: capacity.into(), rate: 0 }
    }

    /// Notes that `bytes` came in `time`. Returns how long to sleep now that `used` bytes are in the buffer:
    /// as long as half of the free space takes to fill.
    pub fn next(&mut self, bytes: u64, time: Duration, used: u32) -> Duration {
        // At least 1, because it divides.
        let nanoseconds = time.as_nanos().max(1);
        self.rate = (u128::from(bytes) * 1_000_000_000 / nanoseconds) as u64;
        let half_free = self.capacity.saturating_sub(used.into()) / 2;
        match self.rate {
            0 => LONGEST,
            rate => Duration::from_secs_f64(half_free as f64 / rate as f64).clamp(SHORTEST, LONGEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_5_the_flush_thread_looks_again_before_the_buffer_is_full() {
        let mut pace = Pace::new(4 << 20);
        let second = Duration::from_secs(1);
        assert_eq!(pace.next(0, second, 0), LONGEST);
        assert_eq!(pace.next(32_000_000, second, 0), LONGEST);
        assert_eq!(pace.next(2 << 30, second, 2 << 20), SHORTEST);
        let sleep = pace.next(200 << 20, second, 0);
        assert_eq!(sleep, Duration::from_millis(10));
        assert_eq!(pace.next(1, Duration::ZERO, u32::MAX), SHORTEST);
    }
}
