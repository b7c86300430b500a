//! The numbers of classic tracepoints, which the tracing file system has.

use std::io;

use mete_schema::kernel::read_tracing_file;

use crate::KernelError;

/// The number of the tracepoint `group/name`.
pub(crate) fn tracepoint_id(tracepoint: &str) -> Result<u64, KernelError> {
    let text = read_tracing_file(&format!("events/{tracepoint}/id"));
    text.and_then(|text| text.trim().parse().map_err(io::Error::other))
        .map_err(|source| KernelError::Tracefs { tracepoint: tracepoint.into(), source })
}
