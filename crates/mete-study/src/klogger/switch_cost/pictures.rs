//! The pictures of what scheduling costs.

use mete_plot::{self as plot, Axis, Series};

use super::costs::SwitchCosts;
use crate::study::StudyFile;

/// The paper's plot: the time spent in a second, by its two parts.
pub(super) fn a_second(all: &[SwitchCosts]) -> StudyFile {
    let series = [
        series(all, "both", |costs| Some(costs.ms_a_second)),
        series(all, "choosing", |costs| Some(costs.choosing_ms_a_second())),
        series(all, "switching", |costs| Some(costs.ms_a_second - costs.choosing_ms_a_second())),
    ];
    drawn("a-second.svg", "Scheduling in a second", "ms", &series)
}

pub(super) fn a_switch(all: &[SwitchCosts]) -> StudyFile {
    let series = [
        series(all, "choosing", |costs| costs.choosing.half()),
        series(all, "switching", |costs| costs.switching.half()),
    ];
    drawn("a-switch.svg", "A switch", "ns, median", &series)
}

fn series(all: &[SwitchCosts], name: &str, of: fn(&SwitchCosts) -> Option<f64>) -> Series {
    let points = all.iter().filter_map(|costs| Some((costs.processes as f64, of(costs)?)));
    Series { name: name.to_owned(), points: points.collect() }
}

fn drawn(file: &str, title: &str, unit: &str, series: &[Series]) -> StudyFile {
    let across = Axis { label: "processes".into(), is_logarithmic: true };
    let up = Axis { label: unit.into(), is_logarithmic: false };
    (file.to_owned(), plot::lines(title, &across, &up, series))
}
