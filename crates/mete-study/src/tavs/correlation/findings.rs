//! What came out of the paper's claims on correlation.

use serde_json::json;

use super::{
    AT_ONCE, BITS, BOOSTS, FAIR_SLICE_BITS, HIT_RATIO, LATE, NC, RESPONSE, THROUGHPUT, WIDTHS, WINDOWS,
};
use crate::simulated::{Measure, Ran};
use crate::study::{Finding, Findings};

pub(super) fn of(found: &Ran) -> Findings {
    vec![
        ("window-hits", windows(found, &HIT_RATIO, |ratios| ratios[WINDOWS.len() - 1] < ratios[0] - 5.0)),
        ("window-throughput", windows(found, &THROUGHPUT, |all| all[4] > 1.05 * all[0])),
        ("one-bit", one_bit(found, BITS)),
        ("more-bits", more_bits(found, BITS)),
        ("responses", responses(found, BITS)),
        ("one-bit-fair", one_bit(found, FAIR_SLICE_BITS)),
        ("more-bits-fair", more_bits(found, FAIR_SLICE_BITS)),
        ("responses-fair", responses(found, FAIR_SLICE_BITS)),
        ("uncorrelated", uncorrelated(found)),
    ]
}

/// Figure 12, for reads that are sent late, for which the paper has its window (§3.5.1), and for reads that are sent
/// at once.
fn windows(found: &Ran, measure: &Measure, holds: fn(&[f64]) -> bool) -> Option<Finding> {
    let (at_once, late) = (found.means(AT_ONCE, WINDOWS, measure)?, found.means(LATE, WINDOWS, measure)?);
    let holds = holds(&late) && holds(&at_once);
    Some(Finding::new(json!({ "late": late, "at_once": at_once, "unit": measure.unit }), holds))
}

/// A measure with counters of 1, 2 and 4 bits.
fn by_width(found: &Ran, line: &str, measure: &Measure) -> Option<[f64; 3]> {
    found.means(line, WIDTHS, measure)?.try_into().ok()
}

fn one_bit(found: &Ran, line: &str) -> Option<Finding> {
    let [one, two, _] = by_width(found, line, &HIT_RATIO)?;
    Some(Finding::new(json!({ "percent": one }), (54.0..=74.0).contains(&one) && one < two))
}

fn more_bits(found: &Ran, line: &str) -> Option<Finding> {
    let [_, two, four] = by_width(found, line, &HIT_RATIO)?;
    let holds = two > 80.0 && four >= two && four - two < 10.0;
    Some(Finding::new(json!({ "two": two, "four": four }), holds))
}

fn responses(found: &Ran, line: &str) -> Option<Finding> {
    let [one, two, four] = by_width(found, line, &RESPONSE)?;
    let holds = one > 1.1 * two && (two / four - 1.0).abs() < 0.2;
    Some(Finding::new(json!({ "one": one, "two": two, "four": four }), holds))
}

fn uncorrelated(found: &Ran) -> Option<Finding> {
    let (boosts, ratio) = (found.mean(NC, &BOOSTS)?, found.mean(NC, &HIT_RATIO)?);
    let response = found.mean(NC, &RESPONSE)?;
    let ([one, two, _], [_, with, _]) = (by_width(found, BITS, &RESPONSE)?, by_width(found, BITS, &BOOSTS)?);
    let values = json!({ "times": boosts / with, "ratio": ratio, "response": response, "two": two });
    Some(Finding::new(values, boosts > 4.0 * with && ratio < 25.0 && response < 1.5 * one))
}
