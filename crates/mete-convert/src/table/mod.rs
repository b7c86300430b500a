//! A trace as one table, for Parquet and Arrow: a row is an event or a gap, in the trace's order.
//!
//! One table, not one for each event, because a question about a trace is mostly about what came before
//! and after: that is one `SELECT … ORDER BY`, or a window function. Columns of other events are null, which
//! costs next to nothing in either format.

mod arrow_file;
pub(crate) mod columns;
mod parquet;
mod rows;
mod statement;
mod writer;

pub use arrow_file::ArrowFile;
pub use parquet::Parquet;

/// The metadata in which the trace's description travels, as `description.json` has it.
const DESCRIPTION: &str = "mete.description";
/// The metadata that says what is in the trace and what is not (NEW-2).
const COMPLETENESS: &str = "mete.completeness";
/// The metadata of a column that says what it holds.
const DOC: &str = "mete.doc";
/// Rows that are written at once: enough to be quick, few enough for a cache.
const BATCH_ROWS: usize = 16 << 10;
