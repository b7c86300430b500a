//! The distributions of a tick's costs, drawn and as data.

use mete_plot::{self as plot, Axis, Series};

use super::ticks::TickCosts;
use crate::klogger::cdf;
use crate::study::StudyFile;

pub(super) fn drawn(costs: &TickCosts) -> StudyFile {
    let across = Axis { label: "ns".into(), is_logarithmic: true };
    let up = Axis { label: "percent that take no longer".into(), is_logarithmic: false };
    ("timer.svg".to_owned(), plot::lines("What a timer interrupt takes", &across, &up, &series(costs)))
}

pub(super) fn distribution(costs: &TickCosts) -> StudyFile {
    ("distribution.csv".to_owned(), cdf::csv(&series(costs), "ns"))
}

fn series(costs: &TickCosts) -> [Series; 3] {
    [
        costs.handler.series("handler"),
        costs.soft.series("soft interrupts behind it"),
        costs.away.series("program away"),
    ]
}
