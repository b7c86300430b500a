//! A trace as one table, for Parquet and Arrow: a row is an event or a gap, in the trace's order.
//!
//! There is one table, and not one for each event. A question about a trace is mostly about what came before
//! and after, which in one table is one `SELECT … ORDER BY`, or a window function. Columns of other events
//! are null, which costs almost nothing in either format.

mod arrow_file;
pub(crate) mod columns;
mod parquet;
mod rows;
mod statement;
mod writer;

pub use arrow_file::ArrowFile;
pub use parquet::Parquet;

/// The key of the metadata with the trace's description, as `description.json` has it.
const DESCRIPTION: &str = "mete.description";
/// The key of the metadata that say what is in the trace and what is not (NEW-2).
const COMPLETENESS: &str = "mete.completeness";
/// The key of a column's metadata that say what it holds.
const DOC: &str = "mete.doc";
/// Rows that are written at once: enough to be quick, few enough for a cache.
const BATCH_ROWS: usize = 16 << 10;
