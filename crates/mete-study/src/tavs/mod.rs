//! The studies of the TAVS paper (TAVS-8): scenarios of a host with a driver domain, run over several seeds
//! with parts of the credit scheduler and of TAVS switched on and off.
//!
//! Each study is a [`Plan`](crate::simulated::Plan): its cases, what is measured of them, what came out of the paper's
//! claims, and the paper's figures.

pub(crate) mod belief;
pub(crate) mod correlation;
pub(crate) mod keep;
mod measures;
pub(crate) mod overhead;
pub(crate) mod ratio;
pub(crate) mod response;
pub(crate) mod starvation;

/// The paper's baseline, and the line that is compared with it.
const BASELINE: &str = "baseline";
const TAVS: &str = "TAVS";
const INHERITANCE: &str = "priority inheritance";

/// A guest kernel that prefers the task that has used the processor least.
const FAIR_KERNEL: &str = "guest.mixed.scheduler={ fair = { latency_ms = 20, least_ms = 4 } }";
