//! Medians and spread. Times on a machine that others use, too, have a long tail on one side. So this module
//! never takes a mean or a variance. Order statistics say how sure a median is. They need no assumption about
//! the distribution and no random numbers, so the same samples always get the same verdict.

/// Order statistics of a set of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The least sample.
    pub min: f64,
    /// The first quartile: a quarter of the samples is not greater.
    pub q1: f64,
    /// The median: half of the samples is not greater.
    pub median: f64,
    /// The third quartile: three quarters of the samples are not greater.
    pub q3: f64,
    /// The greatest sample.
    pub max: f64,
    /// The number of samples.
    pub count: usize,
}

impl Summary {
    /// The summary of these samples; `None` if there is no sample. A sample that is not a number is left out.
    /// An example is a quotient whose divisor disappeared in noise.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        let mut sorted: Vec<f64> = samples.iter().copied().filter(|sample| !sample.is_nan()).collect();
        if sorted.is_empty() {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let at = |part| quantile(&sorted, part);
        Some(Summary {
            min: at(0.0),
            q1: at(0.25),
            median: at(0.5),
            q3: at(0.75),
            max: at(1.0),
            count: sorted.len(),
        })
    }
}

/// The value below which `part` (0 to 1) of the sorted samples lie, interpolated linearly between the two
/// nearest samples. There must be a sample.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    // `part` is within 0 and 1, so neither place is beyond the last sample.
    let (below, rest) = (place.floor(), place.fract());
    let low = sorted[below as usize];
    let high = sorted[place.ceil() as usize];
    low + (high - low) * rest
}

/// The interval in which the median of the sampled distribution lies, with a confidence of at least 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The median is not below this.
    pub low: f64,
    /// The median is not above this.
    pub high: f64,
}

impl Interval {
    /// The interval between two of the sorted samples, the k-th from below and the k-th from above. The
    /// median lies outside of the interval only if fewer than k of n samples fell on one side of the median.
    /// The probability of that is the probability of fewer than k heads in n throws of a coin. k is the
    /// greatest number for which it is at most 2.5 % on each side. At least six samples are needed. A sample
    /// that is not a number could have any value: it counts as the least and as the greatest one.
    pub fn of_median(samples: &[f64]) -> Option<Interval> {
        let rank = rank(samples.len())?;
        let sorted_with = |unknown: f64| {
            let mut sorted: Vec<f64> =
                samples.iter().map(|sample| if sample.is_nan() { unknown } else { *sample }).collect();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        // `rank` is at least 1 and at most half of the samples, so that neither index is out of range.
        let low = sorted_with(f64::NEG_INFINITY)[rank - 1];
        let high = sorted_with(f64::INFINITY)[samples.len() - rank];
        Some(Interval { low, high })
    }

    /// The distance from one end to the other.
    pub fn width(self) -> f64 {
        self.high - self.low
    }
}

/// Up to this number of samples, the rank is computed exactly. Beyond it, the binomial distribution is a
/// normal one to within less than one rank, and its terms would become too small for an `f64`.
const EXACT: usize = 1000;
/// The probability that the median lies outside of the interval, for each side.
const TAIL: f64 = 0.025;
/// The number of standard deviations beyond which [`TAIL`] of a normal distribution lies.
const TAIL_DEVIATIONS: f64 = 1.96;

/// Which of `count` sorted samples, counted from 1, ends the interval.
fn rank(count: usize) -> Option<usize> {
    if count > EXACT {
        let count = count as f64;
        // The number of samples below the median has the mean n/2 and the standard deviation √n/2.
        return Some((count / 2.0 - TAIL_DEVIATIONS / 2.0 * count.sqrt()) as usize);
    }
    // The probability of exactly `rank` heads in `count` throws; each term follows from the one before.
    let mut term = 0.5_f64.powi(i32::try_from(count).ok()?);
    let (mut below, mut rank) = (0.0, 0);
    while below + term <= TAIL {
        below += term;
        term *= (count - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
    (rank > 0).then_some(rank)
}

/// The median, or `None` as in [`Summary::of`].
pub fn median(samples: &[f64]) -> Option<f64> {
    Summary::of(samples).map(|summary| summary.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_known_data_are_right() {
        let summary = Summary::of(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        let expected = Summary { min: 1.0, q1: 2.0, median: 3.0, q3: 4.0, max: 5.0, count: 5 };
        assert_eq!(summary, expected);
    }

    #[test]
    fn between_two_samples_the_line_is_taken() {
        let summary = Summary::of(&[0.0, 10.0]).unwrap();
        assert_eq!((summary.q1, summary.median, summary.q3), (2.5, 5.0, 7.5));
    }

    #[test]
    fn one_sample_is_its_own_summary_and_none_has_none() {
        let summary = Summary::of(&[7.0]).unwrap();
        assert_eq!((summary.min, summary.median, summary.max), (7.0, 7.0, 7.0));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), Summary::of(&[1.0]));
        assert_eq!(median(&[]), None);
    }

    /// Ranks from tables of the sign test, two-sided at 5 %. Each is one more than the table's critical
    /// value.
    #[test]
    fn log_17_intervals_of_the_median_are_those_of_the_sign_test() {
        let expected = [
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (15, Some(4)),
            (20, Some(6)),
            (50, Some(18)),
        ];
        assert_eq!(expected.map(|(count, _)| (count, rank(count))), expected);
        assert!(rank(1000).unwrap().abs_diff(rank(1001).unwrap()) <= 1, "where counting ends, nothing jumps");
        let samples: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(Interval::of_median(&samples), Some(Interval { low: 2.0, high: 8.0 }));
        assert_eq!(Interval::of_median(&samples[..5]), None);
    }

    #[test]
    fn log_17_a_sample_that_says_nothing_makes_the_interval_wider_at_both_ends() {
        let mut samples: Vec<f64> = (1..=9).map(f64::from).collect();
        samples[4] = f64::NAN;
        assert_eq!(Interval::of_median(&samples), Some(Interval { low: 1.0, high: 9.0 }));
        samples[3] = f64::NAN;
        assert_eq!(
            Interval::of_median(&samples),
            Some(Interval { low: f64::NEG_INFINITY, high: f64::INFINITY })
        );
    }
}
