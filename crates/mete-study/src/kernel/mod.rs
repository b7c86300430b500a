//! The kernel component and its peers.

mod cost;
mod perf_event;
mod perf_record;
mod pipe;
pub(crate) mod tracefs;

use crate::context::Context;
use crate::report::Row;

/// All rows about the kernel.
pub(crate) fn rows(context: &mut Context<'_>) -> Vec<Row> {
    let mut rows = cost::rows(context);
    if !context.is_cancelled() {
        rows.extend(pipe::rows(context));
    }
    rows
}
