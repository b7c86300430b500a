//! Medians and spread. Times on a machine that others use have a long tail on one side, so no mean
//! and no variance is ever taken.

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
    /// The summary of these samples; `None` if there is none or one is not a number.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        if samples.is_empty() || samples.iter().any(|sample| sample.is_nan()) {
            return None;
        }
        let mut sorted = samples.to_vec();
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
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(median(&[]), None);
    }
}
