//! The distributions of quanta, drawn and as data.

use mete_plot::{self as plot, Axis, Series};

use super::program::ProgramQuanta;
use crate::klogger::cdf;
use crate::study::StudyFile;

pub(super) fn drawn(all: &[ProgramQuanta]) -> StudyFile {
    let across = Axis { label: "effective quantum, us".into(), is_logarithmic: true };
    let up = Axis { label: "percent of quanta that are not longer".into(), is_logarithmic: false };
    let plot = plot::lines("How long programs keep the processor", &across, &up, &series(all));
    ("quanta.svg".to_owned(), plot)
}

pub(super) fn distribution(all: &[ProgramQuanta]) -> StudyFile {
    ("distribution.csv".to_owned(), cdf::csv(&series(all), "us"))
}

fn series(all: &[ProgramQuanta]) -> Vec<Series> {
    all.iter().map(|quanta| quanta.us.series(&quanta.name)).collect()
}
