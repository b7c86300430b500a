//! What a decision costs over the number of clients, for every policy (VTRR paper, §5.2).

mod points;

use mete_base::progress::Progress;
use mete_measure::Report;
use mete_measure::processor::{self, Pinned};
use mete_plot::{self as plot, Axis, Series};
use mete_policy::CATALOG;
use serde_json::{Value, json};

use self::points::{CLIENTS, PAPERS, PAPERS_MOST, PolicyCosts};
use crate::study::{Finding, Findings, KeptRows, Study, StudyFile, StudyOptions, about};

const MOST: u32 = CLIENTS[CLIENTS.len() - 1];
/// The numbers of clients in the page's table.
const SHOWN: [u32; 7] = [1, 10, 100, 400, 10_000, 100_000, 1_000_000];
const TITLE: &str = "What a decision costs";
const CLIENTS_LABEL: &str = "number of clients";

pub(crate) struct VtrrCost;

impl Study for VtrrCost {
    about!("vtrr-cost", "what a decision costs over the number of clients, for every policy");
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
        vec![
            ("constant", constant(found)),
            ("linear", linear(found)),
            ("logarithmic", logarithmic(found)),
            ("single", single(found)),
        ]
    }

    fn facts(found: &PolicyCosts) -> Value {
        let [linux_ns, list_ns, heap_ns, vtrr_ns] =
            PAPERS.map(|policy| [PAPERS_MOST, MOST].map(|clients| found.ns(policy, clients)));
        let policies = CATALOG.iter().map(|entry| entry.name);
        let policies =
            policies.map(|name| json!({ "name": name, "ns": SHOWN.map(|clients| found.ns(name, clients)) }));
        json!({
            "clients": [PAPERS_MOST, MOST],
            "linux_ns": linux_ns,
            "list_ns": list_ns,
            "heap_ns": heap_ns,
            "vtrr_ns": vtrr_ns,
            "search_ns": search_ns(found),
            "shown": SHOWN,
            "policies": policies.collect::<Vec<_>>(),
        })
    }

    fn pictures(found: &PolicyCosts) -> Vec<StudyFile> {
        vec![
            ("scheduling-overhead.svg".to_owned(), papers(found)),
            ("all-policies.svg".to_owned(), all(found)),
        ]
    }

    fn redrawn(kept: &KeptRows) -> Vec<StudyFile> {
        VtrrCost::pictures(&PolicyCosts::kept(kept))
    }
}

/// The cost of a linear search for one client. The difference contains only the cost that grows with the
/// clients.
fn search_ns(found: &PolicyCosts) -> Option<f64> {
    let [few, many] = [100, PAPERS_MOST].map(|clients| found.ns("wfq-linear", clients));
    Some((many? - few?) / f64::from(PAPERS_MOST - 100))
}

fn constant(found: &PolicyCosts) -> Option<Finding> {
    let (least, most) = found.range("vtrr", 10, PAPERS_MOST)?;
    let values = json!({ "least_ns": least, "most_ns": most, "clients": PAPERS_MOST });
    let finding = Finding::new(values, most < 1000.0 && most <= 1.3 * least);
    Some(finding.unless_noisy(found.is_noisy("vtrr", 10, PAPERS_MOST)))
}

/// A linear search takes four times as long with 400 clients as with 100. A part of a decision's cost is the
/// same for any number.
fn linear(found: &PolicyCosts) -> Option<Finding> {
    let growth = |policy| Some(found.ns(policy, PAPERS_MOST)? / found.ns(policy, 100)?);
    let (linux, list) = (growth(PAPERS[0])?, growth(PAPERS[1])?);
    let holds = [linux, list].iter().all(|growth| (2.0..8.0).contains(growth));
    let finding = Finding::new(json!({ "linux": linux, "list": list }), holds);
    Some(finding.unless_noisy(found.are_noisy(&PAPERS[..2], &[100, PAPERS_MOST])))
}

fn logarithmic(found: &PolicyCosts) -> Option<Finding> {
    let [linux, list, heap, vtrr] = PAPERS.map(|policy| found.ns(policy, PAPERS_MOST));
    let (linux, list, heap, vtrr) = (linux?, list?, heap?, vtrr?);
    let values = json!({
        "clients": PAPERS_MOST, "linux_ns": linux, "list_ns": list, "heap_ns": heap, "vtrr_ns": vtrr,
    });
    let finding = Finding::new(values, heap < linux.min(list) && vtrr < heap);
    Some(finding.unless_noisy(found.are_noisy(&PAPERS, &[PAPERS_MOST])))
}

fn single(found: &PolicyCosts) -> Option<Finding> {
    let (linux, vtrr) = (found.ns(PAPERS[0], 1)?, found.ns("vtrr", PAPERS_MOST)?);
    let values = json!({ "linux_ns": linux, "vtrr_ns": vtrr, "clients": PAPERS_MOST });
    let is_noisy = found.is_noisy(PAPERS[0], 1, 1) || found.is_noisy("vtrr", PAPERS_MOST, PAPERS_MOST);
    Some(Finding::new(values, linux > vtrr).unless_noisy(is_noisy))
}

/// The paper's figure.
fn papers(found: &PolicyCosts) -> String {
    let (series, quartiles): (Vec<_>, Vec<_>) =
        PAPERS.iter().map(|&policy| line(found, policy, PAPERS_MOST)).unzip();
    let [x, y] = [CLIENTS_LABEL, "ns, median and quartiles"].map(Axis::linear);
    plot::lines_with_intervals(TITLE, &x, &y, &series, &quartiles)
}

/// All policies, up to the greatest number of clients. With a line for each policy, quartiles at each point
/// would hide the lines.
fn all(found: &PolicyCosts) -> String {
    let series: Vec<_> = CATALOG.iter().map(|entry| line(found, entry.name, MOST).0).collect();
    let [x, y] = [CLIENTS_LABEL, "ns, median"].map(Axis::logarithmic);
    plot::lines(TITLE, &x, &y, &series)
}

/// A policy's costs up to this number of clients, with the quartiles of each.
fn line(found: &PolicyCosts, policy: &str, most: u32) -> (Series, Vec<Option<(f64, f64)>>) {
    let places = found
        .of(policy, most)
        .filter_map(|point| Some(((f64::from(point.clients), point.ns?), point.quartiles)));
    let (points, quartiles): (Vec<_>, _) = places.unzip();
    (Series::new(policy, points), quartiles)
}

#[cfg(test)]
mod tests {
    use super::points::PolicyCost;
    use super::*;
    use mete_measure::Verdict;

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

    /// The verdicts on costs that grow as the paper says. Those for which `is_noisy` holds allow no verdict.
    fn verdicts(is_noisy: impl Fn(&str, u32) -> bool) -> Vec<Verdict> {
        let ns = |policy: &str, clients: u32| match policy {
            "goodness" | "wfq-linear" => 20.0 + f64::from(clients),
            "wfq" => 30.0,
            _ => 10.0,
        };
        let all = PAPERS.iter().flat_map(|&policy| CLIENTS.map(|clients| (policy, clients)));
        let points = all.map(|(policy, clients)| PolicyCost {
            quartiles: None,
            policy,
            clients,
            ns: Some(ns(policy, clients)),
            is_noisy: is_noisy(policy, clients),
        });
        crate::study::verdicts(VtrrCost::findings(&PolicyCosts(points.collect())))
    }

    #[test]
    fn vtrr_5_there_is_no_verdict_on_times_that_are_too_noisy_and_one_on_all_others() {
        use Verdict::{Holds, TooNoisy};
        assert_eq!(verdicts(|_, _| false), [Holds; 4]);
        assert_eq!(
            verdicts(|policy, clients| policy == "vtrr" && clients == 20),
            [TooNoisy, Holds, Holds, Holds],
            "only the first looks at VTRR with 20 clients"
        );
        assert_eq!(
            verdicts(|policy, clients| policy == "wfq-linear" && clients == 400),
            [Holds, TooNoisy, TooNoisy, Holds]
        );
        assert_eq!(verdicts(|_, _| true), [TooNoisy; 4]);
        assert_eq!(verdicts(|_, clients| clients > 400), [Holds; 4], "beyond what the paper measured");
    }
}
