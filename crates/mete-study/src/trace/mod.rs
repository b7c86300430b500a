//! Recordings of shipped schemata, made and read by the same libraries as `mete record` and `mete show`.
//!
//! ```text
//!   ScratchRecording ── end ──▶ Recorded ──▶ NamedEvent, in order of time ──▶ Run, Span, Wait ──▶ a study's numbers
//!   (kernel, flush              (a trace's     (one event)                    (the time between two events)
//!    threads)                    directory)
//! ```

mod schedule;
mod spans;
mod usage;
mod waits;
#[cfg(test)]
pub(crate) mod written;

pub(crate) use schedule::{Run, Runs};
pub(crate) use spans::{EVENTS as INTERRUPTS, InterruptKind, Span, Spans};
pub(crate) use usage::Usage;
pub(crate) use waits::{EVENTS as LOCKING, Wait, WaitKind, Waits};
