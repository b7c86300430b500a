//! What a decision costs over the number of clients, for every policy (VTRR paper, §5.2).

use mete_policy::{CATALOG, Setup};

use super::cost_page;
use crate::study::figure::is_noisy;
use crate::study::{StudyOptions, StudyResults};
use mete_base::progress::Progress;
use mete_bench::policy::drive::{Subject, ready};
use mete_measure::interleave::interleave;
use mete_measure::processor::{self, Pinned};
use mete_measure::report::{Report, Row};
use mete_measure::statistics::Summary;

/// The numbers of clients: the paper's range first, then up to a million.
pub(super) const CLIENTS: [u32; 14] =
    [1, 2, 5, 10, 20, 50, 100, 200, 300, 400, 1_000, 10_000, 100_000, 1_000_000];

/// The result of one policy with one number of clients.
pub(super) struct PolicyCost {
    pub policy: &'static str,
    pub clients: u32,
    /// The cost of a decision.
    pub ns: Option<f64>,
    /// The first and the third quartile of the cost.
    pub quartiles: Option<(f64, f64)>,
    pub is_noisy: bool,
}

pub(super) fn study(options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
    let mut report = Report::new("mete study vtrr-cost");
    // A refusal is no error here: then the noise of the times decides on verdicts.
    let pinned = Pinned::to(processor::quietest());
    let mut points = Vec::new();
    for clients in CLIENTS {
        if progress.is_cancelled() {
            break;
        }
        for (policy, row, is_noisy) in measured(clients, options, progress) {
            points.push(PolicyCost {
                policy,
                clients,
                ns: row.median,
                quartiles: row.q1.zip(row.q3),
                is_noisy,
            });
            report.rows.push(row);
        }
    }
    drop(pinned);
    report.is_complete = !progress.is_cancelled();
    let figures = cost_page::figures(&points);
    let files = cost_page::files(&report, &figures, &points);
    StudyResults { folder: "vtrr-cost", report, figures, files }
}

/// The name of a row.
pub(super) fn row_name(policy: &str, clients: u32) -> String {
    format!("{policy}, {clients} {}", plural(clients))
}

/// Measures all policies in turn. The answer has a row for each policy, and whether it is noisy.
fn measured(
    clients: u32,
    options: StudyOptions,
    progress: &mut dyn Progress,
) -> Vec<(&'static str, Row, bool)> {
    let rounds = if options.is_quick { 5 } else { 21 };
    let mut subjects: Vec<Subject> =
        CATALOG.iter().map(|entry| ready(clients, |setup: &Setup| (entry.make)(setup))).collect();
    let all: Vec<usize> = (0..subjects.len()).collect();
    let samples =
        interleave(&format!("{clients} clients"), rounds, &all, progress, |nth| subjects[nth].sample());
    all.iter()
        .map(|&nth| {
            let (policy, samples) = (CATALOG[nth].name, samples.of(nth));
            let is_noisy = samples.as_ref().is_ok_and(|samples| is_noisy(samples));
            (policy, Row::new(row_name(policy, clients), "ns", samples), is_noisy)
        })
        .collect()
}

fn plural(clients: u32) -> &'static str {
    if clients == 1 { "client" } else { "clients" }
}

/// The least and the greatest of a policy's costs from `least` to `most` clients.
pub(super) fn range(points: &[PolicyCost], policy: &str, least: u32, most: u32) -> Option<(f64, f64)> {
    let own = points.iter().filter(|point| point.policy == policy);
    let within = own.filter(|point| (least..=most).contains(&point.clients));
    let ns: Option<Vec<f64>> = within.map(|point| point.ns).collect();
    let summary = Summary::of(&ns?)?;
    Some((summary.min, summary.max))
}

/// Whether one of a policy's costs from `least` to `most` clients is noisy.
pub(super) fn noise(points: &[PolicyCost], policy: &str, least: u32, most: u32) -> bool {
    let own = points.iter().filter(|point| point.policy == policy);
    own.filter(|point| (least..=most).contains(&point.clients)).any(|point| point.is_noisy)
}

/// A policy's cost with this number of clients.
pub(super) fn cost(points: &[PolicyCost], policy: &str, clients: u32) -> Option<f64> {
    points.iter().find(|point| point.policy == policy && point.clients == clients)?.ns
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
        let shown = cost_page::SHOWN;
        assert!(shown.iter().all(|clients| CLIENTS.contains(clients)), "the page shows what is measured");
    }

    #[test]
    fn vtrr_5_the_study_has_a_row_for_every_policy() {
        for (clients, of) in [(1, "1 client"), (10, "10 clients")] {
            let measured = measured(clients, StudyOptions { is_quick: true }, &mut ());
            let rows: Vec<Row> = measured.into_iter().map(|(_, row, _)| row).collect();
            let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            let expected: Vec<String> = CATALOG.iter().map(|entry| format!("{}, {of}", entry.name)).collect();
            assert_eq!(names, expected);
            let is_measured = |row: &Row| row.samples == 5 && row.median.is_some_and(|ns| ns > 0.0);
            assert!(rows.iter().all(is_measured), "{rows:?}");
        }
    }
}
