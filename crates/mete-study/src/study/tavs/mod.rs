//! The studies of the TAVS paper (TAVS-8): scenarios of a host with a driver domain, run over several seeds
//! with parts of the credit scheduler and of TAVS switched on and off.
//!
//! ```text
//!   studies/NAME/*.toml ──▶ Case (policy, settings) ──▶ Outcome a seed ──▶ Measures ──▶ table, CSV, plots
//!                                                        (Report, Probe)      └──▶ figures: paper's, ours
//! ```
//!
//! A [`Plan`](plan::Plan) is a whole study: its cases, what is measured of each case, and what the paper says.

mod belief;
mod case;
mod correlation;
mod curve;
mod keep;
mod overhead;
mod page;
mod plan;
mod probe;
mod ratio;
mod response;
mod starvation;

use mete_sim::metrics::Latencies;

use super::{Study, StudyOptions};
use crate::progress::Progress;
use mete_plot::Axis;

/// A scenario of a study: the file is shipped with the program.
macro_rules! scenario {
    ($study:literal, $name:literal) => {
        mete_sim::scenario::Shipped {
            name: concat!("studies/", $study, "/", $name, ".toml"),
            text: include_str!(concat!("../../../../../studies/", $study, "/", $name, ".toml")),
        }
    };
}
use scenario;

/// The paper's baseline, and the line that is compared with it.
const BASELINE: &str = "baseline";
const TAVS: &str = "TAVS";

/// The bits of a TCP segment over Ethernet, which has 1460 bytes.
const SEGMENT_BITS: f64 = 1460.0 * 8.0;

fn axis(label: &str) -> Axis {
    Axis { label: label.into(), is_logarithmic: false }
}

fn mean_ms(times: &Latencies) -> Option<f64> {
    times.mean_ns().map(|ns| ns / 1e6)
}

fn quantile_ms(times: &Latencies, part: f64) -> Option<f64> {
    times.quantile_ns(part).map(|ns| ns as f64 / 1e6)
}

pub(super) fn response(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    response::plan().study(options, progress)
}

pub(super) fn starvation(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    starvation::plan().study(options, progress)
}

pub(super) fn keep(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    keep::plan().study(options, progress)
}

pub(super) fn overhead(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    overhead::plan().study(options, progress)
}

pub(super) fn ratio(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    ratio::plan().study(options, progress)
}

pub(super) fn correlation(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    correlation::plan().study(options, progress)
}

pub(super) fn belief(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    belief::plan().study(options, progress)
}
