//! Programs on the simulated machine: audio encoders and virtual machines (VTRR paper, §5.4).

mod workload;

use std::fmt::Write as _;

use mete_base::progress::Progress;
use mete_measure::statistics::Summary;
use mete_measure::{Report, Row};
use mete_plot::{self as plot, Axis, Series};
use serde_json::{Value, json};

use self::workload::{Client, RanWorkload, WORKLOADS};
use super::PAPERS;
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about, head, measure_each};

/// The time that the pictures show, from the beginning.
const SHOWN_MS: f64 = 1500.0;

pub(crate) struct Workloads;

impl Study for Workloads {
    about!("vtrr-workloads", "what audio encoders and virtual machines get done under the same three");
    const IS_SIMULATED: bool = true;
    type Found = Vec<RanWorkload>;

    fn measure(_: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let all: Vec<_> = WORKLOADS.iter().flat_map(|of| PAPERS.map(|policy| (of, policy))).collect();
        measure_each("workloads", all.into_iter(), report, progress, |(workload, policy), _| {
            match RanWorkload::of(workload, policy) {
                Ok(ran) => (rows(&ran), Some(ran)),
                Err(reason) => {
                    (vec![Row::new(format!("{}, {policy}", workload.name), "ms", Err(reason))], None)
                }
            }
        })
    }

    fn findings(found: &Self::Found) -> Findings {
        let findings = WORKLOADS.iter().flat_map(|workload| {
            let ran = PAPERS.map(|policy| workload.under(policy, found));
            let [coarse_id, evenness_id] = workload.claims;
            [(coarse_id, coarse(ran)), (evenness_id, evenness(ran))]
        });
        findings.collect()
    }

    fn facts(found: &Self::Found) -> Value {
        // The greatest distance of an encoder from its share of all frames.
        let off = |policy| WORKLOADS[0].under(policy, found).map(RanWorkload::off_units);
        let clients = found.iter().flat_map(|ran| ran.clients.iter().map(move |client| (ran, client)));
        json!({
            "wfq_off_frames": off("wfq"),
            "vtrr_off_frames": off("vtrr"),
            "clients": clients.filter_map(|(ran, client)| line(ran, client)).collect::<Vec<_>>(),
        })
    }

    fn pictures(found: &Self::Found) -> Vec<StudyFile> {
        found.iter().map(done).collect()
    }

    fn data(found: &Self::Found, report: &Report) -> Vec<StudyFile> {
        vec![("done.csv".to_owned(), csv(found, report))]
    }
}

/// A client's work in the page's table: how many units, and the times from one to the next. `None` for a client that has
/// not done two units.
fn line(ran: &RanWorkload, client: &Client) -> Option<Value> {
    let Summary { median, min, max, .. } = Summary::of(&client.intervals_ms())?;
    Some(json!({
        "workload": ran.workload.name,
        "policy": ran.policy,
        "share": client.share,
        "done": client.done_ns.len(),
        "median_ms": median,
        "shortest_ms": min,
        "longest_ms": max,
    }))
}

fn rows(ran: &RanWorkload) -> Vec<Row> {
    let rows = ran.clients.iter().map(|client| {
        let name = format!("{}, {}: from one to the next, {}", ran.workload.name, ran.policy, client.name);
        Row::new(name, "ms", Ok(client.intervals_ms())).note(format!("{} in all", client.done_ns.len()))
    });
    rows.collect()
}

fn csv(found: &[RanWorkload], report: &Report) -> String {
    let mut text = head(report) + "workload,policy,share,done_ms\n";
    for ran in found {
        for client in &ran.clients {
            for done_ms in client.done_ms() {
                let (name, policy, share) = (ran.workload.name, ran.policy, client.share);
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{name},{policy},{share},{done_ms:.3}");
            }
        }
    }
    text
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

/// The picture of one workload under one policy.
fn done(ran: &RanWorkload) -> StudyFile {
    let series: Vec<_> = ran.clients.iter().map(done_by).collect();
    let [x, y] = ["time, ms", ran.workload.unit].map(Axis::linear);
    let title = format!("{} under {}", ran.workload.name, ran.policy);
    (format!("{}-{}.svg", ran.workload.name, ran.policy), plot::lines(&title, &x, &y, &series))
}

/// The work that a client has done, over time.
fn done_by(client: &Client) -> Series {
    let ends = client.done_ms().take_while(|ms| *ms <= SHOWN_MS);
    let points = std::iter::once(0.0).chain(ends).zip(0u32..).map(|(ms, units)| (ms, f64::from(units)));
    Series::new(&client.name, points)
}
