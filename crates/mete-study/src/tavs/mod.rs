//! The studies of the TAVS paper (TAVS-8): scenarios of a host with a driver domain, run over several seeds
//! with parts of the credit scheduler and of TAVS switched on and off.
//!
//! Each study is a [`Plan`](crate::simulated::Plan): cases and measures in its `mod.rs`, the paper's claims in
//! `findings.rs`, and the paper's figures in `pictures.rs`.

mod belief;
mod correlation;
mod keep;
mod measures;
mod overhead;
mod ratio;
mod response;
mod starvation;

use crate::simulated::Simulated;
use crate::study::StudyEntry;

/// The paper's baseline, and the line that is compared with it.
const BASELINE: &str = "baseline";
const TAVS: &str = "TAVS";

/// A guest kernel that prefers the task that has used the processor least.
const FAIR_KERNEL: &str = "guest.mixed.scheduler={ fair = { latency_ms = 20, least_ms = 4 } }";

pub(crate) const STUDIES: &[StudyEntry] = &[
    StudyEntry::of::<Simulated<response::Response>>(),
    StudyEntry::of::<Simulated<starvation::Starvation>>(),
    StudyEntry::of::<Simulated<keep::Keep>>(),
    StudyEntry::of::<Simulated<ratio::Ratio>>(),
    StudyEntry::of::<Simulated<correlation::Correlation>>(),
    StudyEntry::of::<Simulated<belief::Belief>>(),
    StudyEntry::of::<Simulated<overhead::Overhead>>(),
];
