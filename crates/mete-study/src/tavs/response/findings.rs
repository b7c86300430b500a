//! What came out of the paper's claims on response times.

use serde_json::json;

use super::{
    AGGRESSIVE, BASELINE, DOMAINS_BASELINE, DOMAINS_TAVS, ECHO, HOGS, IO_ONLY, LONGEST, MEAN, MEDIAN, MIXED,
    MOST, NATIVE, OWN, SETTLED, TAVS,
};
use crate::simulated::Ran;
use crate::study::{Finding, Findings};

pub(super) fn of(found: &Ran) -> Findings {
    vec![
        ("boosting", boosting_alone(found)),
        ("aggression", aggression(found)),
        ("fraction", fraction(found)),
        ("latencies", latencies(found)),
        ("evenness", evenness(found)),
        ("domains-baseline", domains_baseline(found)),
        ("domains-faster", domains_faster(found)),
        ("domains-alike", domains_alike(found)),
    ]
}

fn boosting_alone(found: &Ran) -> Option<Finding> {
    let median = |line| found.mean(line, &MEDIAN);
    let (native, io, mixed) = (median(NATIVE)?, median(IO_ONLY)?, median(BASELINE)?);
    let holds = (io - native).abs() < (mixed - native) / 20.0;
    Some(Finding::new(json!({ "native": native, "io": io, "mixed": mixed }), holds))
}

fn aggression(found: &Ran) -> Option<Finding> {
    let (own, others) = (found.mean(AGGRESSIVE, &OWN)?, found.mean(AGGRESSIVE, &HOGS)?);
    Some(Finding::new(json!({ "own": own, "others": others }), own > 2.0 * others))
}

fn fraction(found: &Ran) -> Option<Finding> {
    let (baseline, tavs) = (found.mean(BASELINE, &MEAN)?, found.mean(TAVS, &MEAN)?);
    let settled = found.mean(TAVS, &SETTLED)?;
    let values = json!({ "baseline": baseline, "tavs": tavs, "settled": settled });
    Some(Finding::new(values, baseline > 10.0 * tavs))
}

fn latencies(found: &Ran) -> Option<Finding> {
    let (longest, most) = (found.mean(BASELINE, &LONGEST)?, found.mean(BASELINE, &MOST)?);
    let (tavs_longest, tavs_most) = (found.mean(TAVS, &LONGEST)?, found.mean(TAVS, &MOST)?);
    let values = json!({
        "longest": longest, "most": most, "tavs_longest": tavs_longest, "tavs_most": tavs_most,
    });
    Some(Finding::new(values, (120.0..=180.0).contains(&longest) && tavs_most < 1.0))
}

fn evenness(found: &Ran) -> Option<Finding> {
    let both = |line| Some([found.mean(line, &OWN)?, found.mean(line, &HOGS)?]);
    let even = |[own, others]: [f64; 2]| (own / others - 1.0).abs() < 0.05;
    let (baseline, tavs) = (both(BASELINE)?, both(TAVS)?);
    Some(Finding::new(json!({ "baseline": baseline, "tavs": tavs }), even(baseline) && even(tavs)))
}

fn domains_baseline(found: &Ran) -> Option<Finding> {
    let (mixed, echo) = (found.mean(DOMAINS_BASELINE, &MIXED)?, found.mean(DOMAINS_BASELINE, &ECHO)?);
    let holds = (50.0..=100.0).contains(&mixed) && mixed > 10.0 * echo;
    Some(Finding::new(json!({ "mixed": mixed, "echo": echo }), holds))
}

fn domains_faster(found: &Ran) -> Option<Finding> {
    let (before, after) = (found.mean(DOMAINS_BASELINE, &MIXED)?, found.mean(DOMAINS_TAVS, &MIXED)?);
    Some(Finding::new(json!({ "after": after, "times": before / after }), before > 10.0 * after))
}

fn domains_alike(found: &Ran) -> Option<Finding> {
    let (mixed, echo) = (found.mean(DOMAINS_TAVS, &MIXED)?, found.mean(DOMAINS_TAVS, &ECHO)?);
    let baseline = found.mean(DOMAINS_BASELINE, &MIXED)?;
    Some(Finding::new(json!({ "mixed": mixed, "echo": echo }), mixed - echo < baseline / 10.0))
}
