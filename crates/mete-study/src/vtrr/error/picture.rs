//! Two policies' surfaces beside each other, as in the paper.

use mete_bench::policy::surfaces::{CLIENTS, TOTALS};
use mete_plot::{self as plot, Grid, Surface};
use mete_sim::quanta::Point;

use super::experiment::{ErrorCell, ErrorCells};

/// The highest error above, the lowest below.
pub(super) fn pair(found: &ErrorCells, policies: [&str; 2]) -> String {
    let grid = Grid {
        x: ("number of clients".into(), CLIENTS.map(f64::from).into()),
        y: ("sum of shares".into(), TOTALS.map(f64::from).into()),
        z: "error, time units".into(),
    };
    let [left, right] = policies.map(str::to_uppercase);
    let title = format!("{left} and {right}: service-time error");
    plot::surfaces(&title, &grid, &policies.map(|policy| panel(found, policy)))
}

fn panel(found: &ErrorCells, policy: &str) -> (String, Vec<Surface>) {
    let lowest = heights(found, policy, |cell| cell.lowest.mean);
    let highest = heights(found, policy, |cell| cell.highest.mean);
    let surfaces = [("lowest, mean", lowest), ("highest, mean", highest)]
        .map(|(name, heights)| Surface { name: name.into(), heights });
    (format!("{} error range", policy.to_uppercase()), surfaces.into())
}

fn heights(found: &ErrorCells, policy: &str, value: fn(&ErrorCell) -> f64) -> Vec<Vec<f64>> {
    let row = |clients| {
        let cells = TOTALS.iter().filter_map(move |&total| found.find(policy, Point { clients, total }));
        cells.map(value).collect()
    };
    CLIENTS.map(row).into()
}
