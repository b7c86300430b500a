//! The picture of what an event costs.

use mete_plot::{self as plot, Axis};

use crate::study::StudyFile;

/// The median and the quartiles of each logger's cost in nanoseconds.
pub(super) fn of<'a>(costs: impl Iterator<Item = (&'a str, [f64; 3])>) -> Vec<StudyFile> {
    vec![("loggers.svg".to_owned(), bars(&costs.collect::<Vec<_>>()))]
}

fn bars(costs: &[(&str, [f64; 3])]) -> String {
    let names: Vec<String> = costs.iter().map(|(name, _)| (*name).to_owned()).collect();
    let values = costs.iter().map(|(_, [median, ..])| *median).collect();
    // The axis is logarithmic, so an interval must begin above zero.
    let quartiles = costs.iter().map(|(_, [_, q1, q3])| (*q1 > 0.0).then_some((*q1, *q3))).collect();
    let y = Axis { label: "ns an event, median and quartiles".into(), is_logarithmic: true };
    let series = [("an event".to_owned(), values)];
    plot::bars_with_intervals("What an event costs", &y, &names, &series, &[quartiles])
}
