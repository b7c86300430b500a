//! Distributions of times: responses, times from waking to running.

use hdrhistogram::Histogram;
use mete_policy::Nanoseconds;

/// One hour. Longer times are recorded as one hour.
pub const LONGEST_NS: Nanoseconds = Nanoseconds::new(3_600_000_000_000);

/// How many digits of each time are kept.
const DIGITS: u8 = 3;

/// This number of times is kept as it is. A histogram takes a quarter of a megabyte, and of a million clients
/// most record only few times.
const FEW: usize = 64;

/// A distribution of times. It is exact while there are few times. With more it keeps three digits and has a
/// fixed size.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies(Kept);

/// Invariant: `Few` is sorted and has at most [`FEW`] times; more times are `Many`.
#[derive(Debug, Clone, PartialEq)]
enum Kept {
    Few(Vec<Nanoseconds>),
    Many(Histogram<u64>),
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies(Kept::Few(Vec::new()))
    }
}

fn histogram(times: &[Nanoseconds]) -> Histogram<u64> {
    let histogram = Histogram::new_with_max(LONGEST_NS.get(), DIGITS);
    let mut histogram = histogram.expect("the bounds are constants that the library allows");
    times.iter().for_each(|&time_ns| histogram.saturating_record(time_ns.get()));
    histogram
}

impl Latencies {
    /// Records one time.
    pub fn record(&mut self, time_ns: Nanoseconds) {
        let time_ns = time_ns.min(LONGEST_NS);
        match &mut self.0 {
            Kept::Few(times) if times.len() == FEW => {
                let mut many = histogram(times);
                many.saturating_record(time_ns.get());
                self.0 = Kept::Many(many);
            }
            // Behind its equals, so that the vector stays sorted.
            Kept::Few(times) => times.insert(times.partition_point(|&kept_ns| kept_ns <= time_ns), time_ns),
            Kept::Many(times) => times.saturating_record(time_ns.get()),
        }
    }

    /// Records all times of another distribution.
    pub fn add(&mut self, other: &Latencies) {
        match (&mut self.0, &other.0) {
            (_, Kept::Few(times)) => times.iter().for_each(|&time_ns| self.record(time_ns)),
            (Kept::Few(times), Kept::Many(others)) => {
                let mut many = others.clone();
                times.iter().for_each(|&time_ns| many.saturating_record(time_ns.get()));
                self.0 = Kept::Many(many);
            }
            // Both have the same bounds, so it never fails.
            (Kept::Many(times), Kept::Many(others)) => drop(times.add(others)),
        }
    }

    /// How many times were recorded.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Kept::Few(times) => times.len() as u64,
            Kept::Many(times) => times.len(),
        }
    }

    /// The time that `part` (0 to 1) of all times do not exceed; `None` without any time.
    pub fn quantile_ns(&self, part: f64) -> Option<Nanoseconds> {
        let part = part.clamp(0.0, 1.0);
        match &self.0 {
            Kept::Few(times) => {
                let number = (part * times.len() as f64).ceil() as usize;
                times.get(number.saturating_sub(1)).copied()
            }
            Kept::Many(times) => Some(Nanoseconds::new(times.value_at_quantile(part))),
        }
    }

    /// The mean; `None` without any time.
    pub fn mean_ns(&self) -> Option<f64> {
        match &self.0 {
            Kept::Few(times) if times.is_empty() => None,
            Kept::Few(times) => {
                Some(times.iter().map(|&time_ns| time_ns.get() as f64).sum::<f64>() / times.len() as f64)
            }
            Kept::Many(times) => Some(times.mean()),
        }
    }

    /// The longest time; `None` without any.
    pub fn longest_ns(&self) -> Option<Nanoseconds> {
        match &self.0 {
            Kept::Few(times) => times.last().copied(),
            Kept::Many(times) => Some(Nanoseconds::new(times.max())),
        }
    }

    /// The distribution function as the points of a plot: each time that occurs, to three digits, and the
    /// part of all times that do not exceed it.
    pub fn curve(&self) -> impl Iterator<Item = (Nanoseconds, f64)> + '_ {
        // Few times go through a histogram, too, so that both forms are rounded alike.
        let all = match &self.0 {
            Kept::Few(times) => &histogram(times),
            Kept::Many(times) => times,
        };
        let steps: Vec<_> =
            all.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
        let (mut so_far, all) = (0, self.count());
        steps.into_iter().map(move |(time_ns, count)| {
            so_far += count;
            (Nanoseconds::new(time_ns), so_far as f64 / all as f64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_times_are_right_to_three_digits() {
        let mut latencies = Latencies::default();
        (1..=1000).for_each(|ms| latencies.record(Nanoseconds::new(ms * 1_000_000)));
        assert_eq!(latencies.count(), 1000);
        let median = latencies.quantile_ns(0.5).expect("there are times");
        assert!(median.abs_diff(Nanoseconds::new(500_000_000)) <= Nanoseconds::new(500_000), "{median}");
        assert!(
            latencies.longest_ns().expect("there are times").abs_diff(Nanoseconds::new(1_000_000_000))
                <= Nanoseconds::new(1_000_000)
        );
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
        latencies.record(Nanoseconds::MAX);
        assert_eq!(latencies.count(), 1);
        assert!(latencies.quantile_ns(1.0).expect("there is one") >= LONGEST_NS);
    }

    #[test]
    fn the_curve_ends_at_one_and_sums_distributions() {
        let (mut first, mut second) = (Latencies::default(), Latencies::default());
        first.record(Nanoseconds::new(5));
        second.record(Nanoseconds::new(7));
        second.record(Nanoseconds::new(7));
        first.add(&second);
        assert_eq!(
            first.curve().collect::<Vec<_>>(),
            [(Nanoseconds::new(5), 1.0 / 3.0), (Nanoseconds::new(7), 1.0)]
        );
    }

    #[test]
    fn few_times_and_many_say_the_same_to_three_digits() {
        let mut few = Latencies::default();
        (1..=FEW as u64).rev().for_each(|time| few.record(Nanoseconds::new(time * 1_234_567)));
        let many = Latencies(Kept::Many(match &few.0 {
            Kept::Few(times) => histogram(times),
            Kept::Many(_) => panic!("these are few"),
        }));
        for part in [0.0, 0.01, 0.25, 0.5, 0.99, 1.0] {
            let (exact, close) = (few.quantile_ns(part), many.quantile_ns(part));
            let (exact, close) = (exact.expect("there are times"), close.expect("there are times"));
            assert!(close.abs_diff(exact) <= exact / 1000, "{part}: {exact}, {close}");
        }
        assert!(few.curve().eq(many.curve()));
        let mut both = few.clone();
        both.add(&few);
        assert_eq!(both.count(), 2 * FEW as u64);
        let mut other_way = many.clone();
        other_way.add(&few);
        assert!(both.curve().eq(other_way.curve()));
    }
}
