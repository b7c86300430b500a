//! The studies of the TAVS paper (TAVS-8): scenarios of a host with a driver domain, run over several seeds
//! with parts of the credit scheduler and of TAVS switched on and off.
//!
//! ```text
//!   studies/NAME/*.toml ──▶ Case (policy, settings) ──▶ Outcome a seed ──▶ Measures ──▶ table, CSV, plots
//!                                                        (Report, Probe)      └──▶ figures: paper's, ours
//! ```
//!
//! A [`Plan`](plan::Plan) is a whole study: its cases, what is measured of each, and what the paper says.

mod case;
mod page;
mod plan;
mod probe;
mod response;

use mete_sim::metrics::Latencies;

use super::{Study, StudyOptions};
use crate::progress::Progress;

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

/// The paper's baseline, and what it is compared with.
const BASELINE: &str = "baseline";
const TAVS: &str = "TAVS";

fn mean_ms(times: &Latencies) -> Option<f64> {
    times.mean_ns().map(|ns| ns / 1e6)
}

fn quantile_ms(times: &Latencies, part: f64) -> Option<f64> {
    times.quantile_ns(part).map(|ns| ns as f64 / 1e6)
}

pub(super) fn response(options: StudyOptions, progress: &mut dyn Progress) -> Study {
    response::plan().study(options, progress)
}
