//! The kernel component and its peers.

mod cost;
mod perf_event;
mod perf_record;
mod pipe;
pub(crate) mod tracefs;

pub(crate) use cost::rows;
pub(crate) use pipe::rows as pipe_rows;
