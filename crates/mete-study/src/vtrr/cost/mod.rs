//! What a decision costs over the number of clients, for every policy (VTRR paper, §5.2).

mod findings;
mod pictures;
mod points;

use mete_base::progress::Progress;
use mete_measure::processor::{self, Pinned};
use mete_measure::report::Report;
use mete_policy::CATALOG;
use serde::Serialize;
use serde_json::json;

use self::points::{CLIENTS, PAPERS, PAPERS_MOST, PolicyCosts};
use crate::study::{Findings, KeptRows, Study, StudyFile, StudyOptions, StudyTexts, texts};

const MOST: u32 = CLIENTS[CLIENTS.len() - 1];
/// The numbers of clients in the page's table.
const SHOWN: [u32; 7] = [1, 10, 100, 400, 10_000, 100_000, 1_000_000];

pub(crate) struct Cost;

impl Study for Cost {
    const NAME: &'static str = "vtrr-cost";
    const SHOWS: &'static str = "what a decision costs over the number of clients, for every policy";
    const TEXTS: StudyTexts = texts!("vtrr-cost");
    const IS_SIMULATED: bool = false;
    type Found = PolicyCosts;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> PolicyCosts {
        // A refusal is no error here: then the noise of the times decides on verdicts.
        let _pinned = Pinned::to(processor::quietest());
        let mut found = PolicyCosts::default();
        for clients in CLIENTS {
            if progress.is_cancelled() {
                break;
            }
            let (rows, points): (Vec<_>, Vec<_>) =
                points::measured(clients, options, progress).into_iter().unzip();
            report.rows.extend(rows);
            found.0.extend(points);
        }
        found
    }

    fn findings(found: &PolicyCosts) -> Findings {
        findings::of(found)
    }

    fn facts(found: &PolicyCosts) -> impl Serialize {
        let at = |policy| [PAPERS_MOST, MOST].map(|clients| found.ns(policy, clients));
        let [linux_ns, list_ns, heap_ns, vtrr_ns] = PAPERS.map(at);
        let line = |name| json!({ "name": name, "ns": SHOWN.map(|clients| found.ns(name, clients)) });
        json!({
            "clients": [PAPERS_MOST, MOST],
            "linux_ns": linux_ns,
            "list_ns": list_ns,
            "heap_ns": heap_ns,
            "vtrr_ns": vtrr_ns,
            "search_ns": search_ns(found),
            "shown": SHOWN,
            "policies": CATALOG.iter().map(|entry| line(entry.name)).collect::<Vec<_>>(),
        })
    }

    fn pictures(found: &PolicyCosts) -> Vec<StudyFile> {
        pictures::of(found)
    }

    fn data(_: &PolicyCosts, _: &Report) -> Vec<StudyFile> {
        Vec::new()
    }

    fn redrawn(kept: &KeptRows) -> Vec<StudyFile> {
        if kept.is_empty() { Vec::new() } else { pictures::of(&PolicyCosts::kept(kept)) }
    }
}

/// The cost of a linear search for one client. The difference contains only the cost that grows with the clients.
fn search_ns(found: &PolicyCosts) -> Option<f64> {
    let [few, many] = [100, PAPERS_MOST].map(|clients| found.ns("wfq-linear", clients));
    Some((many? - few?) / f64::from(PAPERS_MOST - 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vtrr_5_the_study_goes_through_the_papers_numbers_of_clients_and_on_to_a_million() {
        assert!(CLIENTS.is_sorted_by(|fewer, more| fewer < more));
        assert_eq!((CLIENTS[0], CLIENTS[CLIENTS.len() - 1]), (1, 1_000_000));
        let [papers, beyond] = [1..=400, 401..=1_000_000].map(|range| {
            CLIENTS.iter().filter(|&clients| range.contains(clients)).copied().collect::<Vec<u32>>()
        });
        assert_eq!(papers.last(), Some(&400), "the paper's figure ends there");
        assert!(papers.len() >= 10, "a curve of it needs that many points: {papers:?}");
        let is_decade = |pair: &[u32]| pair[1] <= 10 * pair[0];
        assert!(beyond.windows(2).all(is_decade), "no more than a decade between two: {beyond:?}");
        assert!(SHOWN.iter().all(|clients| CLIENTS.contains(clients)), "the page shows what is measured");
    }
}
