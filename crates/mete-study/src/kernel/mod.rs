//! The kernel component and its peers.

pub(crate) mod bpftrace;
mod cost;
pub(crate) mod generated;
pub(crate) mod kmsg;
pub(crate) mod perf_event;
pub(crate) mod perf_record;
mod pipe;
pub(crate) mod tracefs;

pub(crate) use cost::rows;
pub(crate) use pipe::rows as pipe_rows;
