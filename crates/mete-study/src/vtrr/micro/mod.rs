//! Schedules in detail: which client ran when (VTRR paper, §5.3).

mod findings;
mod picture;
mod schedule;

use std::fmt::Write as _;

use mete_base::progress::Progress;
use mete_measure::report::{Report, Row};
use mete_policy::Nanoseconds;
use mete_sim::quanta::QUANTUM_NS;
use serde::Serialize;

use self::schedule::{CYCLE, SHARES, WatchedSchedule};
use crate::study::{Findings, Study, StudyFile, StudyOptions, StudyTexts, head, texts};

/// The paper's three schedulers. The scheduler of Linux 2.2 has the name goodness here.
const POLICIES: [&str; 3] = ["goodness", "wfq", "vtrr"];

pub(crate) struct Micro;

impl Study for Micro {
    const NAME: &'static str = "vtrr-micro";
    const SHOWS: &'static str = "who runs when under Linux 2.2's scheduler, WFQ and VTRR";
    const TEXTS: StudyTexts = texts!("vtrr-micro");
    const IS_SIMULATED: bool = true;
    type Found = Vec<WatchedSchedule>;

    fn measure(_: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        progress.begin("schedules", POLICIES.len() as u64);
        let mut schedules = Vec::new();
        for policy in POLICIES {
            if progress.is_cancelled() {
                break;
            }
            match WatchedSchedule::of(policy) {
                Ok(schedule) => schedules.push(schedule),
                Err(reason) => report.rows.push(Row::new(policy, "ms", Err(reason))),
            }
            progress.step();
        }
        report.rows.extend(schedules.iter().flat_map(rows));
        schedules
    }

    fn findings(schedules: &Self::Found) -> Findings {
        match POLICIES.map(|policy| find(schedules, policy)) {
            [Some(linux), Some(wfq), Some(vtrr)] => findings::of([linux, wfq, vtrr]),
            _ => Findings::new(),
        }
    }

    fn facts(schedules: &Self::Found) -> impl Serialize {
        Facts {
            cycle_quanta: CYCLE,
            cycle_ms: (CYCLE as u64 * QUANTUM_NS).as_millis_f64(),
            largest_waits_ms: POLICIES.map(|policy| {
                find(schedules, policy).map(|of| of.longest_wait_ns(SHARES.len() - 1).as_millis_f64())
            }),
            policies: schedules.iter().map(|of| of.policy).collect(),
            errors: SHARES
                .iter()
                .enumerate()
                .map(|(client, &share)| errors(schedules, client, share))
                .collect(),
        }
    }

    fn pictures(schedules: &Self::Found) -> Vec<StudyFile> {
        vec![("schedules.svg".to_owned(), picture::timeline(schedules))]
    }

    fn data(schedules: &Self::Found, report: &Report) -> Vec<StudyFile> {
        vec![("schedules.csv".to_owned(), csv(schedules, report))]
    }
}

/// What the page says besides the findings.
#[derive(Serialize)]
struct Facts {
    cycle_quanta: usize,
    cycle_ms: f64,
    /// The longest wait of the client with the largest share under each of [`POLICIES`].
    largest_waits_ms: [Option<f64>; 3],
    policies: Vec<&'static str>,
    errors: Vec<ClientErrors>,
}

/// The errors of a client under each policy.
#[derive(Serialize)]
struct ClientErrors {
    share: u32,
    /// The lowest and the highest error in time units.
    ranges: Vec<[f64; 2]>,
}

fn errors(schedules: &[WatchedSchedule], client: usize, share: u32) -> ClientErrors {
    let errors = schedules.iter().map(|of| &of.outcome.clients[client]);
    ClientErrors { share, ranges: errors.map(|of| [of.lowest_tu(), of.highest_tu()]).collect() }
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
