//! What came out of the paper's claims on programs.

use serde_json::json;

use super::workload::{POLICIES, RanWorkload, WORKLOADS};
use crate::study::{Finding, Findings};

pub(super) fn of(found: &[RanWorkload]) -> Findings {
    let findings = WORKLOADS.iter().flat_map(|workload| {
        let ran = POLICIES.map(|policy| workload.under(policy, found));
        let [coarse_id, evenness_id] = workload.claims;
        [(coarse_id, coarse(ran)), (evenness_id, evenness(ran))]
    });
    findings.collect()
}

/// All work that was done, against shares.
fn coarse([_, wfq, vtrr]: [Option<&RanWorkload>; 3]) -> Option<Finding> {
    let [wfq, vtrr] = [wfq?, vtrr?].map(RanWorkload::off_percent);
    Some(Finding::new(json!({ "wfq_percent": wfq, "vtrr_percent": vtrr }), wfq.max(vtrr) <= 2.0))
}

/// The paper's statements on bursts and on jitter.
fn evenness([linux, wfq, vtrr]: [Option<&RanWorkload>; 3]) -> Option<Finding> {
    let [linux, wfq, vtrr] = [linux?, wfq?, vtrr?].map(RanWorkload::jitter_ms);
    let holds = linux > wfq.max(vtrr) && (wfq - vtrr).abs() < linux - wfq.max(vtrr);
    Some(Finding::new(json!({ "linux_ms": linux, "wfq_ms": wfq, "vtrr_ms": vtrr }), holds))
}
