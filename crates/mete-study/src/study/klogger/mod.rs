//! The case studies of the KLogger paper (KLOG-9): each records the kernel with a shipped schema while something
//! runs, or takes somebody's trace, and says what the paper's figure says.

mod cdf;
mod page;
mod quanta;
mod quanta_page;
mod workloads;

pub(super) use quanta::{of_trace as quanta_of_trace, study as quanta};
