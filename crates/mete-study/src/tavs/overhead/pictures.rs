//! The slowdown over the cost of an event.

use mete_plot::{self as plot, Series};

use super::{HACKBENCH, TRACKED_NS, slowdown_percent};
use crate::simulated::{Ran, axis};
use crate::study::StudyFile;

pub(super) fn of(found: &Ran<Vec<f64>>) -> Vec<StudyFile> {
    let points = TRACKED_NS.iter().filter_map(|&ns| Some((f64::from(ns), slowdown_percent(found, ns)?)));
    let series = Series { name: HACKBENCH.into(), points: points.collect() };
    let (x, y) = (axis("cost of a tracked event, ns"), axis("slowdown, %"));
    let title = "Section 5.5: hackbench while its tasks are tracked";
    vec![("slowdown.svg".into(), plot::lines(title, &x, &y, &[series]))]
}
