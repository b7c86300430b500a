//! What came out of the paper's claims on the cost of a decision.

use serde_json::json;

use super::points::{PAPERS, PAPERS_MOST, PolicyCosts};
use crate::study::{Finding, Findings};

pub(super) fn of(found: &PolicyCosts) -> Findings {
    vec![
        ("constant", constant(found)),
        ("linear", linear(found)),
        ("logarithmic", logarithmic(found)),
        ("single", single(found)),
    ]
}

fn constant(found: &PolicyCosts) -> Option<Finding> {
    let (least, most) = found.range("vtrr", 10, PAPERS_MOST)?;
    let values = json!({ "least_ns": least, "most_ns": most, "clients": PAPERS_MOST });
    let finding = Finding::new(values, most < 1000.0 && most <= 1.3 * least);
    Some(finding.unless_noisy(found.is_noisy("vtrr", 10, PAPERS_MOST)))
}

/// A linear search takes four times as long with 400 clients as with 100. A part of a decision's cost is the same for
/// any number.
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
        "clients": PAPERS_MOST,
        "linux_ns": linux,
        "list_ns": list,
        "heap_ns": heap,
        "vtrr_ns": vtrr,
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

#[cfg(test)]
mod tests {
    use super::super::points::{CLIENTS, PolicyCost};
    use super::*;
    use mete_measure::Verdict;

    /// Costs that grow as the paper says. Those for which `is_noisy` holds allow no verdict.
    fn points(is_noisy: impl Fn(&str, u32) -> bool) -> PolicyCosts {
        let ns = |policy: &str, clients: u32| match policy {
            "goodness" | "wfq-linear" => 20.0 + f64::from(clients),
            "wfq" => 30.0,
            _ => 10.0,
        };
        let all = PAPERS.iter().flat_map(|&policy| CLIENTS.map(|clients| (policy, clients)));
        let point = |(policy, clients)| PolicyCost {
            quartiles: None,
            policy,
            clients,
            ns: Some(ns(policy, clients)),
            is_noisy: is_noisy(policy, clients),
        };
        PolicyCosts(all.map(point).collect())
    }

    fn verdicts(points: &PolicyCosts) -> Vec<Verdict> {
        of(points).into_iter().map(|(_, finding)| finding.expect("all is measured").verdict).collect()
    }

    #[test]
    fn vtrr_5_there_is_no_verdict_on_times_that_are_too_noisy_and_one_on_all_others() {
        use Verdict::{Holds, TooNoisy};
        assert_eq!(verdicts(&points(|_, _| false)), [Holds; 4]);
        assert_eq!(
            verdicts(&points(|policy, clients| policy == "vtrr" && clients == 20)),
            [TooNoisy, Holds, Holds, Holds],
            "only the first looks at VTRR with 20 clients"
        );
        assert_eq!(
            verdicts(&points(|policy, clients| policy == "wfq-linear" && clients == 400)),
            [Holds, TooNoisy, TooNoisy, Holds]
        );
        assert_eq!(verdicts(&points(|_, _| true)), [TooNoisy; 4]);
        assert_eq!(
            verdicts(&points(|_, clients| clients > 400)),
            [Holds; 4],
            "beyond what the paper measured"
        );
    }
}
