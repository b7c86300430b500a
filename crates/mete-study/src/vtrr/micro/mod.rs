//! Schedules in detail: which client ran when (VTRR paper, §5.3).

mod schedule;

use std::fmt::Write as _;

use mete_base::progress::Progress;
use mete_measure::{Report, Row};
use mete_plot::{self as plot, Lane, Span};
use mete_policy::Nanoseconds;
use mete_sim::quanta::QUANTUM_NS;
use serde_json::{Value, json};

use self::schedule::{CYCLE, SHARES, WatchedSchedule};
use super::PAPERS;
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about, head, measure_each};

/// The time that the picture shows, from the beginning of the schedule.
const SHOWN_MS: f64 = 450.0;

pub(crate) struct Micro;

impl Study for Micro {
    about!("vtrr-micro", "who runs when under Linux 2.2's scheduler, WFQ and VTRR");
    const IS_SIMULATED: bool = true;
    type Found = Vec<WatchedSchedule>;

    fn measure(_: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        measure_each(
            "schedules",
            PAPERS.into_iter(),
            report,
            progress,
            |policy, _| match WatchedSchedule::of(policy) {
                Ok(schedule) => (rows(&schedule), Some(schedule)),
                Err(reason) => (vec![Row::new(policy, "ms", Err(reason))], None),
            },
        )
    }

    fn findings(schedules: &Self::Found) -> Findings {
        let [Some(linux), Some(wfq), Some(vtrr)] = PAPERS.map(|policy| find(schedules, policy)) else {
            return Findings::new();
        };
        let all = [linux, wfq, vtrr];
        vec![
            ("coarse", Some(coarse(all))),
            ("pattern", Some(pattern([wfq, vtrr]))),
            ("evenness", Some(evenness(all))),
        ]
    }

    fn facts(schedules: &Self::Found) -> Value {
        // The longest wait of the client with the largest share under each policy.
        let largest_waits_ms = PAPERS.map(|policy| {
            find(schedules, policy).map(|of| of.longest_wait_ns(SHARES.len() - 1).as_millis_f64())
        });
        let errors = SHARES.iter().enumerate().map(|(client, share)| {
            let errors = schedules.iter().map(|of| &of.outcome.clients[client]);
            let ranges: Vec<_> = errors.map(|of| [of.lowest_tu(), of.highest_tu()]).collect();
            json!({ "share": share, "ranges": ranges })
        });
        json!({
            "cycle_quanta": CYCLE,
            "cycle_ms": (CYCLE as u64 * QUANTUM_NS).as_millis_f64(),
            "largest_waits_ms": largest_waits_ms,
            "policies": schedules.iter().map(|of| of.policy).collect::<Vec<_>>(),
            "errors": errors.collect::<Vec<_>>(),
        })
    }

    fn pictures(schedules: &Self::Found) -> Vec<StudyFile> {
        let lanes: Vec<_> = schedules.iter().map(lane).collect();
        let title = "Who ran when: shares 1 to 5, quanta of 10 ms";
        vec![("schedules.svg".to_owned(), plot::timeline(title, "time, ms", &lanes))]
    }

    fn data(schedules: &Self::Found, report: &Report) -> Vec<StudyFile> {
        vec![("schedules.csv".to_owned(), csv(schedules, report))]
    }
}

fn find<'a>(schedules: &'a [WatchedSchedule], policy: &str) -> Option<&'a WatchedSchedule> {
    schedules.iter().find(|schedule| schedule.policy == policy)
}

fn rows(schedule: &WatchedSchedule) -> Vec<Row> {
    let rows = SHARES.iter().enumerate().flat_map(|(client, share)| {
        let errors = &schedule.outcome.clients[client];
        let waits = schedule.waits_ns(client).into_iter().map(Nanoseconds::as_millis_f64).collect();
        [
            (format!("lowest error, share {share}"), "TU", vec![errors.lowest_tu()]),
            (format!("highest error, share {share}"), "TU", vec![errors.highest_tu()]),
            (format!("time between two turns, share {share}"), "ms", waits),
        ]
    });
    rows.map(|(what, unit, values)| Row::new(format!("{}: {what}", schedule.policy), unit, Ok(values)))
        .collect()
}

fn csv(schedules: &[WatchedSchedule], report: &Report) -> String {
    let mut text = head(report) + "policy,share,from_ms,to_ms\n";
    for schedule in schedules {
        for (client, share) in SHARES.iter().enumerate() {
            for (from, to) in schedule.stretches(client) {
                let (from, to) = (from.as_millis_f64(), to.as_millis_f64());
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{},{share},{from},{to}", schedule.policy);
            }
        }
    }
    text
}

/// Over long times, each client has what its share says.
fn coarse(schedules: [&WatchedSchedule; 3]) -> Finding {
    let worst = schedules.map(worst_share).into_iter().fold(0.0, f64::max);
    Finding::new(json!({ "worst_percent": 100.0 * worst }), worst < 0.01)
}

/// The greatest distance of a client's part of all time from its share, as a part of the share.
fn worst_share(schedule: &WatchedSchedule) -> f64 {
    let all: Nanoseconds = (0..SHARES.len()).map(|client| schedule.received_ns(client)).sum();
    // Every client is always ready, so its share of the sum of shares is what it should have.
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

fn lane(schedule: &WatchedSchedule) -> Lane {
    Lane {
        name: schedule.policy.into(),
        rows: SHARES.iter().map(|share| format!("share {share}")).collect(),
        spans: (0..SHARES.len()).flat_map(|client| spans(schedule, client)).collect(),
    }
}

fn spans(schedule: &WatchedSchedule, client: usize) -> Vec<Span> {
    let spans = schedule.stretches(client).into_iter().map(|(from, to)| Span {
        row: client,
        from: from.as_millis_f64(),
        // A stretch that goes on beyond the picture ends at its edge.
        to: to.as_millis_f64().min(SHOWN_MS),
    });
    spans.filter(|span| span.from < SHOWN_MS).collect()
}
