//! How long a sender waits for an acknowledgement before it sends again (RFC 6298).

use mete_policy::Nanoseconds;

/// The wait before a round trip has been measured (RFC 2988, §2.1, which was in force when the papers were
/// written).
const FIRST_NS: Nanoseconds = Nanoseconds::from_secs(3);
/// The longest wait, Linux's `TCP_RTO_MAX`; RFC 6298, §2.5 demands at least 60 s.
const LONGEST_NS: Nanoseconds = Nanoseconds::from_secs(120);

/// Measures round trips and says how long to wait.
#[derive(Clone, Debug)]
pub(super) struct Timer {
    /// The least that is added to the smoothed round trip.
    least_ns: Nanoseconds,
    smoothed_ns: Option<Nanoseconds>,
    variation_ns: Nanoseconds,
    /// How often in a row it has run out.
    backoff: u32,
}

impl Timer {
    pub(super) fn new(least_ns: Nanoseconds) -> Timer {
        Timer { least_ns, smoothed_ns: None, variation_ns: Nanoseconds::ZERO, backoff: 0 }
    }

    /// A segment has been acknowledged this long after it was sent (§2.2, §2.3).
    pub(super) fn sample(&mut self, took_ns: Nanoseconds) {
        // A measured round trip ends the backing off (RFC 6298, §5.7).
        self.backoff = 0;
        let Some(smoothed_ns) = self.smoothed_ns else {
            (self.smoothed_ns, self.variation_ns) = (Some(took_ns), took_ns / 2);
            return;
        };
        // The variation comes first, because it is measured against the old mean (RFC 6298, §2.3).
        let off_ns = smoothed_ns.abs_diff(took_ns);
        self.variation_ns = self.variation_ns - self.variation_ns / 4 + off_ns / 4;
        self.smoothed_ns = Some(smoothed_ns - smoothed_ns / 8 + took_ns / 8);
    }

    /// It has run out: the next wait is twice as long (§5.5).
    pub(super) fn ran_out(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// How long to wait now: the round trip and four times its variation. As in Linux, the added part is at
    /// least the sender's least.
    pub(super) fn wait_ns(&self) -> Nanoseconds {
        let once_ns = self.smoothed_ns.map_or(FIRST_NS, |smoothed_ns| {
            smoothed_ns.saturating_add(self.variation_ns.saturating_mul(4).max(self.least_ns))
        });
        let times = 1u64.checked_shl(self.backoff).unwrap_or(u64::MAX);
        once_ns.saturating_mul(times).min(LONGEST_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanoseconds = Nanoseconds::new(1_000_000);

    #[test]
    fn a_wait_is_the_round_trip_and_its_variation_and_doubles_each_time_it_runs_out() {
        let mut timer = Timer::new(200 * MS);
        assert_eq!(timer.wait_ns(), 3_000 * MS);
        timer.sample(4 * MS);
        assert_eq!(timer.wait_ns(), 204 * MS, "the variation is less than the least");
        timer.ran_out();
        timer.ran_out();
        assert_eq!(timer.wait_ns(), 816 * MS);
        timer.sample(180 * MS);
        // 7/8 of 4 and 1/8 of 180; 3/4 of 2 and 1/4 of 176, four times.
        assert_eq!(timer.wait_ns(), 26 * MS + 200 * MS);
        timer.sample(180 * MS);
        let variation_ns = 4 * (45_500 * MS / 1_000 - 11_375 * MS / 1_000 + 154 * MS / 4);
        assert_eq!(timer.wait_ns(), 26 * MS - 26 * MS / 8 + 180 * MS / 8 + variation_ns);
        (0..200).for_each(|_| timer.ran_out());
        assert_eq!(timer.wait_ns(), 120_000 * MS);
    }
}
