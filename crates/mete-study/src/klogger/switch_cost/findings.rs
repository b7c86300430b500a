//! What came out of the paper's claims on what scheduling costs.

use serde_json::json;

use super::costs::SwitchCosts;
use super::find;
use crate::study::{Finding, Findings, is_noisy};

pub(super) fn of(all: &[SwitchCosts]) -> Findings {
    let of = |processes| find(all, processes);
    vec![
        ("total", of(1).zip(of(8)).map(|(single, eight)| total(single, eight))),
        ("growth", of(2).zip(of(128)).and_then(|(few, many)| growth(few, many))),
    ]
}

/// One process pays more than twice what eight pay together.
fn total(single: &SwitchCosts, eight: &SwitchCosts) -> Finding {
    let [one, many] = [single, eight].map(|costs| costs.ms_a_second);
    let values = json!({ "one_ms": one, "eight_ms": many });
    unless_disturbed(Finding::new(values, one > 2.0 * many), [single, eight])
}

/// Choosing takes more than twice as long among many processes.
fn growth(few: &SwitchCosts, many: &SwitchCosts) -> Option<Finding> {
    let (few_ns, many_ns) = (few.choosing.half()?, many.choosing.half()?);
    let values = json!({ "few_ns": few_ns, "many_ns": many_ns });
    Some(unless_disturbed(Finding::new(values, many_ns > 2.0 * few_ns), [few, many]))
}

/// The finding, without a verdict if one of its measurements was disturbed. Both claims depend on the time of choosing,
/// switch by switch.
fn unless_disturbed(finding: Finding, of: [&SwitchCosts; 2]) -> Finding {
    // Other processes must not have disturbed either of the two numbers that are compared.
    let others_percent = of.iter().map(|costs| costs.others_percent).fold(0.0, f64::max);
    let is_noisy = of.iter().any(|costs| is_noisy(costs.choosing.values()));
    finding.unless_busy(others_percent).unless_noisy(is_noisy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::klogger::cdf::Distribution;
    use mete_measure::Verdict;

    fn costs(processes: usize, choosing: f64, ms_a_second: f64) -> SwitchCosts {
        let of = |ns| Distribution::of(vec![ns]);
        SwitchCosts {
            processes,
            choosing: of(choosing),
            switching: of(500.0),
            ms_a_second,
            others_percent: 0.0,
            lost: 0,
        }
    }

    fn verdicts(all: &[SwitchCosts]) -> Vec<Verdict> {
        let verdict = |found: Option<Finding>| found.map_or(Verdict::NotMeasured, |found| found.verdict);
        of(all).into_iter().map(|(_, found)| verdict(found)).collect()
    }

    fn papers() -> [SwitchCosts; 4] {
        [costs(1, 900.0, 30.2), costs(2, 200.0, 20.0), costs(8, 400.0, 13.2), costs(128, 9e3, 90.0)]
    }

    #[test]
    fn klog_9_scheduling_as_in_the_paper_agrees_and_others_differ() {
        assert_eq!(verdicts(&papers()), [Verdict::Holds; 2]);
        let ours = [costs(1, 900.0, 0.1), costs(2, 900.0, 1.0), costs(8, 900.0, 1.0), costs(128, 1e3, 1.0)];
        assert_eq!(verdicts(&ours), [Verdict::Fails; 2]);
        assert_eq!(verdicts(&ours[..1]), [Verdict::NotMeasured; 2]);
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_switches_most_of_which_take_far_longer_than_the_least() {
        let mut all = papers();
        all[3].choosing = Distribution::of(vec![3_000.0, 9_000.0, 9_100.0]);
        assert_eq!(verdicts(&all), [Verdict::Holds, Verdict::TooNoisy]);
        all[0].choosing = Distribution::of(vec![800.0, 881.0, 900.0]);
        assert_eq!(verdicts(&all), [Verdict::TooNoisy; 2]);
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_switches_beside_others() {
        let mut all = papers();
        all[2].others_percent = 10.5;
        assert_eq!(verdicts(&all), [Verdict::TooNoisy, Verdict::Holds]);
        let total = of(&all).swap_remove(0).1.expect("both numbers were measured");
        assert_eq!(total.others_percent, Some(10.5));
    }
}
