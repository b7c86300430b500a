//! What came out of a claim: values for its sentence, a verdict, and both in words.

use mete_measure::Verdict;
use mete_measure::statistics::Summary;
use serde::Serialize;
use serde_json::Value;

/// The findings of a study by the ids of their claims.
pub(crate) type Findings = Vec<(&'static str, Option<Finding>)>;

/// A time is noisy if the median of its repetitions is more than this many times the least of them.
const NOISE: f64 = 1.1;

/// The greatest percentage of all processors that other programs may use meanwhile: a tenth, as for
/// repetitions.
const BUSY: f64 = 10.0;

/// What came out of one claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    /// The values of the claim's sentence by name.
    pub values: Value,
    pub verdict: Verdict,
    /// Percent of all processors that other programs used, where that is too much for a verdict.
    pub others_percent: Option<f64>,
}

impl Finding {
    /// A finding whose verdict is that the paper's claim holds here, or does not.
    pub(crate) fn new(values: Value, holds: bool) -> Finding {
        Finding { values, verdict: Verdict::of(holds), others_percent: None }
    }

    /// The same finding, without a verdict if the times behind it are noisy.
    pub(crate) fn unless_noisy(self, is_noisy: bool) -> Finding {
        if is_noisy { Finding { verdict: Verdict::TooNoisy, ..self } } else { self }
    }

    /// The same finding, without a verdict if its programs had to share the machine with others, which used
    /// this percentage of all processors.
    pub(crate) fn unless_busy(self, others_percent: f64) -> Finding {
        if others_percent <= BUSY {
            return self;
        }
        Finding { others_percent: Some(others_percent), ..self }.unless_noisy(true)
    }
}

/// One statement of a paper, and what came out here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimResult {
    /// The paper, and its figure, table or section.
    pub figure: String,
    /// What the paper says, or this project's own bar.
    pub paper: String,
    /// Whether it is that bar.
    pub is_own_bar: bool,
    /// What was found here.
    pub ours: String,
    /// Whether both say the same.
    pub verdict: Verdict,
}

/// Whether a measured time allows no verdict, because the median of its repetitions is more than a tenth
/// above the least of them. Other load only makes repetitions longer. So on a quiet machine, median and least
/// lie close together. Repetitions of the time that it is compared with are taken in between, and are as
/// noisy. The studies apply this rule to all measured times. Where the result is what one time adds to
/// another one, they apply it to both.
pub(crate) fn is_noisy(repetitions: &[f64]) -> bool {
    Summary::of(repetitions).is_some_and(|Summary { min, median, .. }| median > NOISE * min)
}

/// The verdicts on the claims, in their order.
#[cfg(test)]
pub(crate) fn verdicts(findings: Findings) -> Vec<Verdict> {
    let verdicts = findings.into_iter().map(|(_, found)| found.map(|found| found.verdict));
    verdicts.map(|verdict| verdict.unwrap_or(Verdict::NotMeasured)).collect()
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
