//! Distributions of times: responses, wake-to-run.

use hdrhistogram::Histogram;
use mete_policy::Nanoseconds;

/// Longer times than this, an hour, are recorded as this.
pub const LONGEST_NS: Nanoseconds = 3_600_000_000_000;

/// Three digits of each time are kept.
const DIGITS: u8 = 3;

/// A distribution of times, to three digits, of a fixed size whatever the number of times.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        let histogram = Histogram::new_with_max(LONGEST_NS, DIGITS);
        Latencies(histogram.expect("the bounds are constants that the library allows"))
    }
}

impl Latencies {
    /// Records one time.
    pub fn record(&mut self, time_ns: Nanoseconds) {
        self.0.saturating_record(time_ns.min(LONGEST_NS));
    }

    /// Records all times of another distribution.
    pub fn add(&mut self, other: &Latencies) {
        // Both have the same bounds, so it never fails.
        let _ = self.0.add(&other.0);
    }

    /// How many times were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time that `part` (0 to 1) of all times do not exceed; `None` without any.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> Option<Nanoseconds> {
        (self.count() > 0).then(|| self.0.value_at_quantile(part.clamp(0.0, 1.0)))
    }

    /// The mean; `None` without any time.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.0.mean())
    }

    /// The longest time; `None` without any.
    #[must_use]
    pub fn longest_ns(&self) -> Option<Nanoseconds> {
        (self.count() > 0).then(|| self.0.max())
    }

    /// The distribution function as a plot's points: each time that occurs, to three digits, and the part
    /// of all times that do not exceed it.
    pub fn curve(&self) -> impl Iterator<Item = (Nanoseconds, f64)> + '_ {
        let (mut so_far, all) = (0, self.count());
        self.0.iter_recorded().map(move |step| {
            so_far += step.count_at_value();
            (step.value_iterated_to(), so_far as f64 / all as f64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_times_are_right_to_three_digits() {
        let mut latencies = Latencies::default();
        (1..=1000).for_each(|ms| latencies.record(ms * 1_000_000));
        assert_eq!(latencies.count(), 1000);
        let median = latencies.quantile_ns(0.5).expect("there are times");
        assert!(median.abs_diff(500_000_000) <= 500_000, "{median}");
        assert!(latencies.longest_ns().expect("there are times").abs_diff(1_000_000_000) <= 1_000_000);
    }

    #[test]
    fn a_distribution_without_times_has_no_figures() {
        let none = Latencies::default();
        assert_eq!((none.quantile_ns(0.5), none.mean_ns(), none.longest_ns()), (None, None, None));
        assert_eq!(none.curve().count(), 0);
    }

    #[test]
    fn times_beyond_the_longest_are_kept_as_the_longest() {
        let mut latencies = Latencies::default();
        latencies.record(u64::MAX);
        assert_eq!(latencies.count(), 1);
        assert!(latencies.quantile_ns(1.0).expect("there is one") >= LONGEST_NS);
    }

    #[test]
    fn the_curve_ends_at_one_and_sums_distributions() {
        let (mut first, mut second) = (Latencies::default(), Latencies::default());
        first.record(5);
        second.record(7);
        second.record(7);
        first.add(&second);
        assert_eq!(first.curve().collect::<Vec<_>>(), [(5, 1.0 / 3.0), (7, 1.0)]);
    }
}
