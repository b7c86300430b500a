//! The studies of the VTRR paper (VTRR-4 to VTRR-6): how fair proportional-share policies are, and what they
//! cost.

pub(crate) mod cost;
pub(crate) mod error;
pub(crate) mod micro;
pub(crate) mod workloads;

/// The paper's three schedulers. The scheduler of Linux 2.2 has the name goodness here.
const PAPERS: [&str; 3] = ["goodness", "wfq", "vtrr"];
