//! What came out of the paper's claims on service-time errors.

use serde_json::json;

use super::experiment::{CHOSEN, ErrorCells};
use crate::study::{Finding, Findings};

/// The least number of orders of magnitude that counts as several: it is nearer to two than to one.
const ORDERS: f64 = 1.5;

pub(super) fn of(surfaces: &ErrorCells, others: &ErrorCells) -> Findings {
    let [vtrr, wrr, wfq] = ["vtrr", "wrr", "wfq"].map(|policy| range(surfaces, policy));
    vec![
        ("wrr", vtrr.zip(wrr).map(|(vtrr, wrr)| against_wrr(vtrr, wrr))),
        ("wfq", against_wfq(vtrr, wrr, wfq)),
        ("bound", never_behind(surfaces)),
        ("wf2q", bounded(others)),
    ]
}

/// The extremes of a policy's mean errors over all points, as the paper gives them.
fn range(surfaces: &ErrorCells, policy: &str) -> Option<[f64; 2]> {
    surfaces.of(policy).next()?;
    let lowest = surfaces.of(policy).map(|cell| cell.lowest.mean).fold(f64::INFINITY, f64::min);
    let highest = surfaces.of(policy).map(|cell| cell.highest.mean).fold(f64::NEG_INFINITY, f64::max);
    Some([lowest, highest])
}

fn width([lowest, highest]: [f64; 2]) -> f64 {
    highest - lowest
}

fn against_wrr(vtrr: [f64; 2], wrr: [f64; 2]) -> Finding {
    let times = width(wrr) / width(vtrr);
    Finding::new(json!({ "vtrr": vtrr, "wrr": wrr, "times": times }), times.log10() >= ORDERS)
}

fn against_wfq(vtrr: Option<[f64; 2]>, wrr: Option<[f64; 2]>, wfq: Option<[f64; 2]>) -> Option<Finding> {
    let (vtrr, wfq) = (vtrr?, wfq?);
    let wider = width(vtrr) - width(wfq);
    let holds = width(wfq) < width(vtrr) && wider < width(wrr?) - width(vtrr);
    Some(Finding::new(json!({ "vtrr": vtrr, "wfq": wfq }), holds))
}

/// The bound of WFQ for a client that falls behind.
fn never_behind(surfaces: &ErrorCells) -> Option<Finding> {
    let lowest = surfaces.of("wfq").map(|cell| cell.worst[0]).reduce(f64::min)?;
    Some(Finding::new(json!({ "lowest": lowest }), lowest >= -1.0))
}

/// The statement on WF²Q, which the paper simulated without a figure.
fn bounded(others: &ErrorCells) -> Option<Finding> {
    let [wf2q, wfq] = ["wf2q+", "wfq"].map(|policy| others.find(policy, CHOSEN[1]));
    let (wf2q, wfq) = (wf2q?, wfq?);
    let [lowest, highest] = wf2q.worst;
    let values = json!({
        "worst": wf2q.worst,
        "means": [wf2q.lowest.mean, wf2q.highest.mean],
        "wfq_means": [wfq.lowest.mean, wfq.highest.mean],
    });
    Some(Finding::new(values, lowest >= -1.0 && highest <= 1.0))
}
