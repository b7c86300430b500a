//! What came out of the paper's claims on KeepOnRunQ.

use serde_json::json;

use super::{BASELINE, COMPUTED, COMPUTED_ELSEWHERE, FETCH, IMAGE, KEEP, OTHERS, OWN, TEXT};
use crate::simulated::Ran;
use crate::study::{Finding, Findings};

pub(super) fn of(found: &Ran) -> Findings {
    vec![
        ("unfair", usage(found, BASELINE, |part| part < 0.9)),
        ("fair", usage(found, KEEP, |part| (part - 1.0).abs() < 0.05)),
        ("loss", loss(found)),
        ("gap", gap(found)),
        ("pages", pages(found)),
    ]
}

/// Figures 9(a) and 15(a): the processor time of the domain with the stream as a part of what others have.
fn usage(found: &Ran, line: &str, holds: fn(f64) -> bool) -> Option<Finding> {
    let (own, others) = (found.mean(line, &OWN)?, found.mean(line, &OTHERS)?);
    Some(Finding::new(json!({ "own": own, "others": others }), holds(own / others)))
}

/// Figure 9(b).
fn loss(found: &Ran) -> Option<Finding> {
    let lost = lost_percent(found, BASELINE)?;
    Some(Finding::new(json!({ "percent": lost }), (25.0..=75.0).contains(&lost)))
}

/// Figure 15(b).
fn gap(found: &Ran) -> Option<Finding> {
    let (before, after) = (lost_percent(found, BASELINE)?, lost_percent(found, KEEP)?);
    Some(Finding::new(json!({ "before": before, "after": after }), after < before / 2.0))
}

/// How much less a task computes beside the stream than one in a domain without.
fn lost_percent(found: &Ran, line: &str) -> Option<f64> {
    Some(100.0 * (1.0 - found.mean(line, &COMPUTED)? / found.mean(line, &COMPUTED_ELSEWHERE)?))
}

/// Table 2.
fn pages(found: &Ran) -> Option<Finding> {
    let fetch = |lines: [&str; 2]| {
        let [before, after] = lines.map(|line| found.mean(line, &FETCH));
        Some([before?, after?])
    };
    let (image_ms, text_ms) = (fetch(IMAGE)?, fetch(TEXT)?);
    let [image, text] = [image_ms, text_ms].map(|[before, after]| 100.0 * (1.0 - after / before));
    let values = json!({ "image": image, "image_ms": image_ms, "text": text, "text_ms": text_ms });
    Some(Finding::new(values, image > 10.0 && (-5.0..image / 2.0).contains(&text)))
}
