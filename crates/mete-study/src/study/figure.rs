//! A figure of a paper beside our result.

use mete_measure::statistics::Summary;
use mete_measure::verdict::{self, Verdict};
use serde::Serialize;

/// The greatest quotient of the median of a time's repetitions and the least of them.
const NOISE: f64 = 1.1;

/// Whether a measured time allows no verdict, because the median of its repetitions is more than a tenth above the
/// least of them. Other load only makes repetitions longer. So on a quiet machine, median and least lie close
/// together. Repetitions of the time that it is compared with are taken in between, and are as noisy. The studies
/// apply this rule to all measured times. Where the result is what one time adds to another one, they apply it to
/// both.
#[must_use]
pub fn is_noisy(repetitions: &[f64]) -> bool {
    Summary::of(repetitions).is_some_and(|Summary { min, median, .. }| median > NOISE * min)
}

/// One statement of a paper, and what came out here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// The paper, and its figure, table or section.
    pub figure: String,
    /// What the paper says.
    pub paper: String,
    /// What was found here.
    pub ours: String,
    /// Whether both say the same.
    #[serde(with = "verdict::of_claim")]
    pub verdict: Verdict,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_too_noisy_if_its_median_is_more_than_a_tenth_above_its_least() {
        assert!(!is_noisy(&[10.0, 11.0, 90.0]), "what is rare is left out by the median");
        assert!(is_noisy(&[10.0, 11.1, 11.2]));
        assert!(!is_noisy(&[]), "what was not measured is said to be that");
    }
}
