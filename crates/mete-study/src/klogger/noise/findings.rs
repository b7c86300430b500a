//! What came out of the paper's claims on noise.

use std::ops::RangeInclusive;

use serde_json::json;

use super::lengths::{Lengths, spread};
use crate::study::{Finding, Findings};

/// The range of quotients that counts as unaffected by the direct overhead: a tenth in both directions.
const UNAFFECTED: RangeInclusive<f64> = 0.9..=1.1;

pub(super) fn of(lengths: &Lengths) -> Findings {
    [("range", range(lengths)), ("direct", direct(lengths))]
        .map(|(id, finding)| (id, finding.map(|finding| finding.unless_busy(lengths.others))))
        .into()
}

/// The slowest iteration takes at least twice as long as the fastest.
fn range(lengths: &Lengths) -> Option<Finding> {
    let [least, most] = [lengths.noisy.quantile(0.0)?, lengths.noisy.quantile(1.0)?];
    let values = json!({ "least_us": least, "most_us": most, "factor": most / least });
    Some(Finding::new(values, most >= 2.0 * least))
}

/// Subtracting the direct overhead of interrupts does not affect the noise.
fn direct(lengths: &Lengths) -> Option<Finding> {
    // Without variation there is no noise that could be reduced.
    let noisy = spread(&lengths.noisy).filter(|noisy| *noisy > 0.0)?;
    let clean = spread(&lengths.clean)?;
    let left = clean / noisy;
    let values = json!({ "noisy": noisy, "clean": clean, "left": 100.0 * left });
    Some(Finding::new(values, UNAFFECTED.contains(&left)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::klogger::cdf::Distribution;
    use mete_measure::Verdict::{self, Fails, Holds, NotMeasured, TooNoisy};

    /// The verdicts on the first two figures if iterations take 1000 us or up to `longer` us more, and without
    /// interrupts up to `longer_clean` us more.
    fn verdicts(longer: f64, longer_clean: f64, others: f64) -> Vec<Verdict> {
        let of = |most: f64| Distribution::of(vec![1_000.0, 1_000.0 + most / 2.0, 1_000.0 + most]);
        let (noisy, clean) = (of(longer), of(longer_clean));
        verdicts_on(&Lengths { noisy, clean, others, ..Lengths::default() })
    }

    fn verdicts_on(lengths: &Lengths) -> Vec<Verdict> {
        let verdict = |(_, finding): (_, Option<Finding>)| finding.map_or(NotMeasured, |of| of.verdict);
        super::of(lengths).into_iter().map(verdict).collect()
    }

    #[test]
    fn klog_9_noise_that_interrupts_leave_as_it_is_agrees_and_what_is_left_has_no_cause() {
        assert_eq!(verdicts(1_500.0, 1_450.0, 0.0), [Holds, Holds]);
        assert_eq!(verdicts(600.0, 300.0, 0.0), [Fails, Fails]);
        assert_eq!(verdicts(600.0, 900.0, 0.0)[1], Fails, "what grows is affected, too");
        assert_eq!(verdicts(0.0, 0.0, 0.0)[1], NotMeasured);
        assert_eq!(verdicts_on(&Lengths::default()), [NotMeasured; 2]);
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_noise_that_others_make() {
        assert_eq!(verdicts(1_500.0, 1_450.0, 11.0), [TooNoisy, TooNoisy]);
        assert_eq!(verdicts(1_500.0, 1_450.0, 10.0), [Holds, Holds]);
    }
}
