//! The cost of a decision for each policy and number of clients.

use mete_base::progress::Progress;
use mete_bench::policy::drive::{Subject, ready};
use mete_measure::statistics::Summary;
use mete_measure::{Row, interleave};
use mete_policy::{CATALOG, Setup};

use crate::study::{KeptRows, StudyOptions, is_noisy};

/// The numbers of clients: the paper's range first, then up to a million.
pub(super) const CLIENTS: [u32; 14] =
    [1, 2, 5, 10, 20, 50, 100, 200, 300, 400, 1_000, 10_000, 100_000, 1_000_000];
/// The greatest number of clients in the paper's figure.
pub(super) const PAPERS_MOST: u32 = 400;
/// Our names for the paper's schedulers: Linux 2.2, WFQ over a list, WFQ over a heap, VTRR.
pub(super) const PAPERS: [&str; 4] = ["goodness", "wfq-linear", "wfq", "vtrr"];

/// The result of one policy with one number of clients.
pub(crate) struct PolicyCost {
    pub policy: &'static str,
    pub clients: u32,
    /// The cost of a decision.
    pub ns: Option<f64>,
    /// The first and the third quartile of the cost.
    pub quartiles: Option<(f64, f64)>,
    pub is_noisy: bool,
}

/// All results.
#[derive(Default)]
pub(crate) struct PolicyCosts(pub Vec<PolicyCost>);

impl PolicyCosts {
    /// The costs in the rows as they are kept in the study's folder. They do not say which costs were noisy.
    pub(super) fn kept(rows: &KeptRows) -> PolicyCosts {
        let all = CLIENTS.iter().flat_map(|&clients| CATALOG.iter().map(move |entry| (entry.name, clients)));
        let points = all.map(|(policy, clients)| {
            let found = rows.find(&row_name(policy, clients));
            let (ns, quartiles) = (found.map(|[median, ..]| median), found.map(|[_, q1, q3]| (q1, q3)));
            PolicyCost { policy, clients, ns, quartiles, is_noisy: false }
        });
        PolicyCosts(points.collect())
    }

    /// A policy's results up to this number of clients.
    pub(super) fn of(&self, policy: &str, most: u32) -> impl Iterator<Item = &PolicyCost> {
        self.0.iter().filter(move |point| point.policy == policy && point.clients <= most)
    }

    /// A policy's cost with this number of clients.
    pub(super) fn ns(&self, policy: &str, clients: u32) -> Option<f64> {
        self.of(policy, clients).find(|point| point.clients == clients)?.ns
    }

    /// The least and the greatest of a policy's costs from `least` to `most` clients.
    pub(super) fn range(&self, policy: &str, least: u32, most: u32) -> Option<(f64, f64)> {
        let within = self.of(policy, most).filter(|point| point.clients >= least);
        let ns: Option<Vec<f64>> = within.map(|point| point.ns).collect();
        let summary = Summary::of(&ns?)?;
        Some((summary.min, summary.max))
    }

    /// Whether one of a policy's costs from `least` to `most` clients is noisy.
    pub(super) fn is_noisy(&self, policy: &str, least: u32, most: u32) -> bool {
        self.of(policy, most).any(|point| point.clients >= least && point.is_noisy)
    }

    /// Whether a cost of one of these policies with one of these numbers of clients is noisy.
    pub(super) fn are_noisy(&self, policies: &[&str], clients: &[u32]) -> bool {
        policies.iter().any(|policy| clients.iter().any(|&of| self.is_noisy(policy, of, of)))
    }
}

/// Measures all policies in turn. The answer has a row for each policy.
pub(super) fn measured(
    clients: u32,
    options: StudyOptions,
    progress: &mut dyn Progress,
) -> Vec<(Row, PolicyCost)> {
    let rounds = if options.is_quick { 5 } else { 21 };
    let mut subjects: Vec<Subject> =
        CATALOG.iter().map(|entry| ready(clients, |setup: &Setup| (entry.make)(setup))).collect();
    let all: Vec<usize> = (0..subjects.len()).collect();
    // All policies in turn: other load of the machine meets all of them alike.
    let samples =
        interleave(&format!("{clients} clients"), rounds, &all, progress, |nth| subjects[nth].sample());
    let points = all.iter().map(|&nth| {
        let (policy, samples) = (CATALOG[nth].name, samples.of(nth));
        let is_noisy = samples.as_ref().is_ok_and(|samples| is_noisy(samples));
        let row = Row::new(row_name(policy, clients), "ns", samples);
        let (ns, quartiles) = (row.median, row.q1.zip(row.q3));
        (row, PolicyCost { policy, clients, ns, quartiles, is_noisy })
    });
    points.collect()
}

fn row_name(policy: &str, clients: u32) -> String {
    let plural = if clients == 1 { "client" } else { "clients" };
    format!("{policy}, {clients} {plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vtrr_5_the_study_has_a_row_for_every_policy() {
        for (clients, of) in [(1, "1 client"), (10, "10 clients")] {
            let measured = measured(clients, StudyOptions { is_quick: true }, &mut ());
            let rows: Vec<Row> = measured.into_iter().map(|(row, _)| row).collect();
            let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            let expected: Vec<String> = CATALOG.iter().map(|entry| format!("{}, {of}", entry.name)).collect();
            assert_eq!(names, expected);
            let is_measured = |row: &Row| row.samples == 5 && row.median.is_some_and(|ns| ns > 0.0);
            assert!(rows.iter().all(is_measured), "{rows:?}");
        }
    }
}
