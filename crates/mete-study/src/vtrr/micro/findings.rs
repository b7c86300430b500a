//! What came out of the paper's claims on single schedules.

use mete_policy::Nanoseconds;
use mete_sim::quanta::QUANTUM_NS;
use serde_json::json;

use super::schedule::{CYCLE, SHARES, WatchedSchedule};
use crate::study::{Finding, Findings};

/// The findings of the schedules under Linux 2.2's scheduler, WFQ and VTRR.
pub(super) fn of(schedules: [&WatchedSchedule; 3]) -> Findings {
    let [_, wfq, vtrr] = schedules;
    vec![
        ("coarse", Some(coarse(schedules))),
        ("pattern", Some(pattern([wfq, vtrr]))),
        ("evenness", Some(evenness(schedules))),
    ]
}

/// Over long times, each client has what its share says.
fn coarse(schedules: [&WatchedSchedule; 3]) -> Finding {
    let worst = schedules.map(worst_share).into_iter().fold(0.0, f64::max);
    Finding::new(json!({ "worst_percent": 100.0 * worst }), worst < 0.01)
}

/// The greatest distance of a client's part of all time from its share, as a part of the share.
fn worst_share(schedule: &WatchedSchedule) -> f64 {
    let all: Nanoseconds = (0..SHARES.len()).map(|client| schedule.received_ns(client)).sum();
    let off = SHARES.iter().enumerate().map(|(client, &share)| {
        let part = schedule.received_ns(client).part_of(all);
        (part / (f64::from(share) / CYCLE as f64) - 1.0).abs()
    });
    off.fold(0.0, f64::max)
}

/// The order of clients repeats after one cycle.
fn pattern(schedules: [&WatchedSchedule; 2]) -> Finding {
    let [wfq_ms, vtrr_ms] = schedules
        .map(|schedule| schedule.period().map(|quanta| (quanta as u64 * QUANTUM_NS).as_millis_f64()));
    let holds = schedules.iter().all(|schedule| schedule.period() == Some(CYCLE));
    Finding::new(json!({ "wfq_ms": wfq_ms, "vtrr_ms": vtrr_ms }), holds)
}

/// The range of errors under Linux is wider than under both others, which differ less from each other.
fn evenness(schedules: [&WatchedSchedule; 3]) -> Finding {
    let [linux, wfq, vtrr] =
        schedules.map(|schedule| schedule.outcome.errors.highest_tu() - schedule.outcome.errors.lowest_tu());
    let holds = linux > wfq.max(vtrr) && (wfq - vtrr).abs() < linux - wfq.max(vtrr);
    Finding::new(json!({ "linux": linux, "wfq": wfq, "vtrr": vtrr }), holds)
}
