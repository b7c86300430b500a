//! The kernel component and its peers.

pub mod bpftrace;
mod cost;
pub mod generated;
pub mod kmsg;
pub mod perf_event;
pub mod perf_record;
mod pipe;
mod size;
mod sustained;
pub mod tracefs;

pub(crate) use cost::rows;
pub(crate) use pipe::rows as pipe_rows;
pub(crate) use size::rows as size_rows;
pub(crate) use sustained::rows as sustained_rows;
