//! The kernel component and its peers.

pub(crate) mod bpftrace;
mod cost;
pub(crate) mod generated;
pub(crate) mod kmsg;
pub(crate) mod perf_event;
pub(crate) mod perf_record;
mod pipe;
mod size;
mod sustained;
pub(crate) mod tracefs;

pub(crate) use cost::rows;
pub(crate) use pipe::rows as pipe_rows;
pub(crate) use size::rows as size_rows;
pub(crate) use sustained::rows as sustained_rows;
