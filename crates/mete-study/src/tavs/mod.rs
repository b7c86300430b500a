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

use crate::study::StudyEntry;
use mete_plot::Axis;

/// A scenario of a study: the file is shipped with the program.
macro_rules! scenario {
    ($study:literal, $name:literal) => {
        mete_sim::scenario::Shipped {
            name: concat!("studies/", $study, "/", $name, ".toml"),
            text: include_str!(concat!("../../../../studies/", $study, "/", $name, ".toml")),
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

pub(crate) const STUDIES: &[StudyEntry] = &[
    StudyEntry::old(
        "tavs-response",
        "how fast a server answers beside a hog in its domain, without and with TAVS (figures 1 and 10)",
        |options, progress| response::plan().study(options, progress),
    ),
    StudyEntry::old(
        "tavs-starvation",
        "how a stream starves beside domains that compute, without and with inheritance (figures 7 and 14)",
        |options, progress| starvation::plan().study(options, progress),
    ),
    StudyEntry::old(
        "tavs-keep",
        "how much a domain with a stream computes, without and with KeepOnRunQ (figures 9 and 15, table 2)",
        |options, progress| keep::plan().study(options, progress),
    ),
    StudyEntry::old(
        "tavs-ratio",
        "what a mixed domain gains by how much it may be boosted (figures 11 and 20)",
        |options, progress| ratio::plan().study(options, progress),
    ),
    StudyEntry::old(
        "tavs-correlation",
        "how many boosts go to whom they are for, by window and counter width (figures 12 and 13)",
        |options, progress| correlation::plan().study(options, progress),
    ),
    StudyEntry::old(
        "tavs-belief",
        "what realistic mixes gain, and what is believed of their tasks (figures 16 to 19)",
        |options, progress| belief::plan().study(options, progress),
    ),
    StudyEntry::old(
        "tavs-overhead",
        "what it costs that tasks and ports are tracked (section 5.5)",
        |options, progress| overhead::plan().study(options, progress),
    ),
];
