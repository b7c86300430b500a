//! The cost of a decision over the number of clients.

use mete_plot::{self as plot, Axis, Series};
use mete_policy::CATALOG;

use super::points::{CLIENTS, PAPERS, PAPERS_MOST, PolicyCosts};
use crate::study::StudyFile;

const TITLE: &str = "What a decision costs";
const CLIENTS_LABEL: &str = "number of clients";

pub(super) fn of(found: &PolicyCosts) -> Vec<StudyFile> {
    vec![("scheduling-overhead.svg".to_owned(), papers(found)), ("all-policies.svg".to_owned(), all(found))]
}

/// The paper's figure.
fn papers(found: &PolicyCosts) -> String {
    let (series, quartiles): (Vec<_>, Vec<_>) =
        PAPERS.iter().map(|&policy| line(found, policy, PAPERS_MOST)).unzip();
    let [x, y] = [CLIENTS_LABEL, "ns, median and quartiles"].map(|label| axis(label, false));
    plot::lines_with_intervals(TITLE, &x, &y, &series, &quartiles)
}

/// All policies, up to the greatest number of clients. With eighteen lines, quartiles at each point would hide the
/// lines.
fn all(found: &PolicyCosts) -> String {
    let most = CLIENTS[CLIENTS.len() - 1];
    let series: Vec<_> = CATALOG.iter().map(|entry| line(found, entry.name, most).0).collect();
    let [x, y] = [CLIENTS_LABEL, "ns, median"].map(|label| axis(label, true));
    plot::lines(TITLE, &x, &y, &series)
}

fn axis(label: &str, is_logarithmic: bool) -> Axis {
    Axis { label: label.into(), is_logarithmic }
}

/// A policy's costs up to this number of clients, with the quartiles of each.
fn line(found: &PolicyCosts, policy: &str, most: u32) -> (Series, Vec<Option<(f64, f64)>>) {
    let places = found
        .of(policy, most)
        .filter_map(|point| Some(((f64::from(point.clients), point.ns?), point.quartiles)));
    let (points, quartiles) = places.unzip();
    (Series { name: policy.to_owned(), points }, quartiles)
}
