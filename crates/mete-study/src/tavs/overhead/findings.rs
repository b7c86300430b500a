//! What came out of the paper's claims on the cost of tracking.

use mete_measure::Bar;
use mete_measure::machine::Machine;
use mete_measure::report::Row;
use mete_measure::statistics::median;
use serde_json::json;

use super::{LOOKED_UP_NS, PORTS, THROUGHPUT, slowdown_percent};
use crate::simulated::Ran;
use crate::study::{Finding, Findings};

/// By how much tracking 400 tasks slows hackbench in the paper.
const PAPERS_PERCENT: f64 = 0.06;
/// The greatest quotient of our value and the paper's that counts as the same order of magnitude.
const LIKE: f64 = 3.0;

pub(super) fn of(found: &Ran<Vec<f64>>) -> Findings {
    let of_100_ns = slowdown_percent(found, 100);
    vec![
        ("tracking", of_100_ns.and_then(|of_100_ns| tracking(of_100_ns, &found.besides))),
        ("ports", ports(found)),
    ]
}

/// Our slowdown, which follows from that of a cost of 100 ns and from the measured cost of a switch.
fn tracking(of_100_ns: f64, measured_ns: &[f64]) -> Option<Finding> {
    let percents = measured_ns.iter().map(|ns| of_100_ns * ns / 100.0).collect();
    let row = Row::new("", "percent", Ok(percents)).bar(Bar::AtMost(LIKE * PAPERS_PERCENT));
    let (percent, verdict) = (row.median?, row.verdict?);
    let values = json!({
        "percent": percent,
        "interval": row.interval_text(|percent| format!("{percent:.2}")),
        "ns": median(measured_ns)?,
        "processor": Machine::here().processor,
        "of_100_ns": of_100_ns,
    });
    Some(Finding { verdict, ..Finding::new(values, true) })
}

fn ports(found: &Ran<Vec<f64>>) -> Option<Finding> {
    let [without, with] = LOOKED_UP_NS.map(|ns| found.mean((PORTS, ns), &THROUGHPUT));
    let (without, with) = (without?, with?);
    Some(Finding::new(json!({ "without": without, "with": with }), with > 0.999 * without))
}

#[cfg(test)]
mod tests {
    use mete_measure::Verdict;
    use mete_measure::reason::Reason;
    use mete_measure::report::Report;

    use super::*;
    use crate::tavs::overhead::switch;

    #[test]
    fn tavs_8_a_cost_that_is_a_part_of_its_noise_has_no_verdict() {
        let of = |least: f64, most: f64| {
            let step = (most - least) / 20.0;
            let samples: Vec<f64> = (0..21).map(|nth| least + step * f64::from(nth)).collect();
            tracking(2.0, &samples).expect("it was measured").verdict
        };
        assert_eq!(of(2.0, 4.0), Verdict::Holds);
        assert_eq!(of(20.0, 40.0), Verdict::Fails);
        assert_eq!(of(5.0, 13.0), Verdict::TooNoisy, "on both sides of three times the paper's");
        assert_eq!(of(-4.0, 8.0), Verdict::TooNoisy, "nothing at all is within the interval");
        let mut report = Report::new("");
        let failed = switch::told(Err(Reason::new("no clock")), &mut report);
        assert_eq!(tracking(2.0, &failed), None, "so the page says that it was not measured");
        assert_eq!(report.rows[0].note, "no clock");
    }
}
