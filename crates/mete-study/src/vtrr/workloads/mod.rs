//! Programs on the simulated machine: audio encoders and virtual machines (VTRR paper, §5.4).

mod findings;
mod picture;
mod workload;

use std::fmt::Write as _;

use mete_base::progress::Progress;
use mete_measure::report::{Report, Row};
use mete_measure::statistics::Summary;
use serde::Serialize;
use serde_json::{Value, json};

use self::workload::{Client, POLICIES, RanWorkload, WORKLOADS};
use crate::study::{Findings, Study, StudyFile, StudyOptions, StudyTexts, head, texts};

pub(crate) struct Workloads;

impl Study for Workloads {
    const NAME: &'static str = "vtrr-workloads";
    const SHOWS: &'static str = "what audio encoders and virtual machines get done under the same three";
    const TEXTS: StudyTexts = texts!("vtrr-workloads");
    const IS_SIMULATED: bool = true;
    type Found = Vec<RanWorkload>;

    fn measure(_: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        progress.begin("workloads", (WORKLOADS.len() * POLICIES.len()) as u64);
        let mut found = Vec::new();
        for (workload, policy) in
            WORKLOADS.iter().flat_map(|workload| POLICIES.map(|policy| (workload, policy)))
        {
            if progress.is_cancelled() {
                break;
            }
            match RanWorkload::of(workload, policy) {
                Ok(ran) => found.push(ran),
                Err(reason) => {
                    report.rows.push(Row::new(format!("{}, {policy}", workload.name), "ms", Err(reason)))
                }
            }
            progress.step();
        }
        report.rows.extend(found.iter().flat_map(rows));
        found
    }

    fn findings(found: &Self::Found) -> Findings {
        findings::of(found)
    }

    fn facts(found: &Self::Found) -> impl Serialize {
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
        found.iter().map(picture::done).collect()
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

fn rows(ran: &RanWorkload) -> impl Iterator<Item = Row> {
    ran.clients.iter().map(|client| {
        let name = format!("{}, {}: from one to the next, {}", ran.workload.name, ran.policy, client.name);
        Row::new(name, "ms", Ok(client.intervals_ms())).note(format!("{} in all", client.done_ns.len()))
    })
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
