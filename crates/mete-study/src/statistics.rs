//! Medians and spread. Times on a machine that others use have a long tail on one side, so no mean
//! and no variance is ever taken. How sure a median is comes from order statistics: they need no assumption
//! about the distribution, and no random numbers, so that the same samples always get the same verdict.

/// Order statistics of a set of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The least.
    pub min: f64,
    /// A quarter of the samples is not greater.
    pub q1: f64,
    /// Half of them.
    pub median: f64,
    /// Three quarters.
    pub q3: f64,
    /// The greatest.
    pub max: f64,
    /// How many there are.
    pub count: usize,
}

impl Summary {
    /// The summary of these samples; `None` if there is none. What is not a number, such as a quotient by what noise
    /// left nothing of, is left out.
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

/// The value below which `part` (0 to 1) of the sorted, non-empty samples lie, on the line between
/// the two nearest.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (below, rest) = (place.floor(), place.fract());
    let low = sorted[below as usize];
    let high = sorted[place.ceil() as usize];
    low + (high - low) * rest
}

/// Where the median of what was sampled lies, with a confidence of at least 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Not below this.
    pub low: f64,
    /// Not above this.
    pub high: f64,
}

impl Interval {
    /// The interval between two of the sorted samples, the k-th from below and the k-th from above. The median lies
    /// outside only if fewer than k of n samples fell on one side of it, which has the probability of fewer than k heads
    /// in n throws of a coin: k is the greatest number for which that is at most 2.5 % on each side. It takes six
    /// samples. A sample that is not a number could be any: it counts as the least and as the greatest one.
    pub fn of_median(samples: &[f64]) -> Option<Interval> {
        let rank = rank(samples.len())?;
        let sorted_with = |unknown: f64| {
            let mut sorted: Vec<f64> =
                samples.iter().map(|sample| if sample.is_nan() { unknown } else { *sample }).collect();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        let low = sorted_with(f64::NEG_INFINITY)[rank - 1];
        let high = sorted_with(f64::INFINITY)[samples.len() - rank];
        Some(Interval { low, high })
    }

    /// From one end to the other.
    pub fn width(self) -> f64 {
        self.high - self.low
    }
}

/// Samples below this number are counted exactly; beyond it the binomial distribution is a normal one to less than a
/// rank, and its terms would be too small for numbers.
const EXACT: usize = 1000;
/// Of what lies outside of the interval, on each side.
const TAIL: f64 = 0.025;
/// Standard deviations beyond which that part of a normal distribution lies.
const TAIL_DEVIATIONS: f64 = 1.96;

/// Which of `count` sorted samples, counted from 1, ends the interval.
fn rank(count: usize) -> Option<usize> {
    if count > EXACT {
        let count = count as f64;
        return Some((count / 2.0 - TAIL_DEVIATIONS / 2.0 * count.sqrt()) as usize);
    }
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

    /// Ranks from tables of the sign test, two-sided at 5 %, each one more than the table's critical value.
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
