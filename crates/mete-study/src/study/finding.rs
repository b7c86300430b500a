//! What came out of a claim: values for its sentence, and a verdict.

use mete_measure::verdict::Verdict;
use serde::Serialize;
use serde_json::Value;

/// The findings of a study by the ids of their claims.
pub(crate) type Findings = Vec<(&'static str, Option<Finding>)>;

/// The greatest percentage of all processors that other programs may use meanwhile: a tenth, as for repetitions.
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
    /// A finding whose verdict is that the paper's claim holds here, or does not. `values` is a structure or a map.
    pub(crate) fn new(values: impl Serialize, holds: bool) -> Finding {
        // Values are structures of numbers and texts, which can always be serialised.
        let values = serde_json::to_value(values).unwrap_or_default();
        Finding { values, verdict: Verdict::of(holds), others_percent: None }
    }

    /// The same finding, without a verdict if the times behind it are noisy.
    pub(crate) fn unless_noisy(self, is_noisy: bool) -> Finding {
        if is_noisy { Finding { verdict: Verdict::TooNoisy, ..self } } else { self }
    }

    /// The same finding, without a verdict if its programs had to share the machine with others, which used this
    /// percentage of all processors.
    pub(crate) fn unless_busy(self, others_percent: f64) -> Finding {
        if others_percent <= BUSY {
            return self;
        }
        Finding { others_percent: Some(others_percent), ..self }.unless_noisy(true)
    }
}
