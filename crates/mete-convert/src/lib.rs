//! Converts a recorded trace into formats that other programs read (NEW-6). A conversion is one pass over the
//! merged records, so that memory does not grow with the trace.
//!
//! ```text
//!                        ┌─ Text, Perl, JsonLines, Csv ── one file of text
//!   Trace ─▶ Merge ─▶ convert ─▶ Parquet, ArrowFile ── one table (table/)
//!              │         ├─ Perfetto ── tracks of processors and threads (perfetto/)
//!              │         └─ Ctf ── a directory of streams (ctf/)
//!              └─ records, gaps, parts that cannot be read; at the end an account of each processor
//! ```
//!
//! A trace of the scheduler is also read as a schedule, which the simulator does again
//! ([`recorded_schedule`]).
//!
//! Principles:
//!
//! 1. **Nothing is lost on the way without a word.** Each format has a place for gaps and for the statement
//!    of what is in the trace and what is not (NEW-2). `docs/convert.md` says where.
//! 2. **A trace is not trusted.** No bytes of a trace or of its description make a converter panic, and no
//!    name in it becomes code or markup of the output.
//! 3. **What events mean comes from the schema**, which travels with the trace. The names of events do not
//!    matter. What matters is what their fields were filled with, and where ([`Meanings`]).
//!
//! ```no_run
//! use mete_convert::{Parquet, convert};
//! use mete_trace::{Filter, Trace};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let trace = Trace::open("trace")?;
//! let mut format = Parquet::new(std::fs::File::create("trace.parquet")?, &trace)?;
//! let done = convert(&trace, Filter::default(), &mut format)?;
//! println!("{} events", done.events);
//! # Ok(())
//! # }
//! ```

mod companions;
mod convert;
mod csv;
mod ctf;
mod format;
mod json;
mod meaning;
mod names;
mod perfetto;
mod perl;
mod schedule;
mod table;
mod text;
mod threads;
mod write;

pub use convert::{Converted, Position, convert, convert_while};
pub use csv::Csv;
pub use ctf::{Ctf, CtfVersion};
pub use format::{Event, Format, LOST};
pub use json::JsonLines;
pub use meaning::{FieldSubject, Meaning, Meanings, Said};
pub use perfetto::Perfetto;
pub use perl::Perl;
pub use schedule::{SCHEDULE_EVENTS, ScheduleError, recorded_schedule, schedule_events};
pub use table::{ArrowFile, Parquet};
pub use text::Text;
