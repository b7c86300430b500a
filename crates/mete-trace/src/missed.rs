//! Runs of programs that the kernel left out, because an interrupt came to a program's place while the
//! program was already running there. The events that such a run would have recorded have no serial numbers,
//! so no gap shows them.
//!
//! The kernel counts these runs and does not say when they were. The recorder looks at the count now and then
//! ([`Recorder::look_for_missed_runs`](crate::Recorder::look_for_missed_runs)). So a trace says between which
//! two moments they were:
//!
//! ```text
//!   look ───────────── look ───────────── look ─────
//!     │                  │  3 more than before: MISSED_RUNS, since the look before
//!     └──── since ───────┴── time of the mark
//! ```

pub use crate::description::missed::MissedRuns;
