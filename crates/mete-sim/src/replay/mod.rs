//! Replay: a recorded schedule becomes a workload, and the same work runs under another policy.
//!
//! ```text
//!   text of perf sched or ftrace ──▶ Event ──▶ Recording ──▶ Replay ──▶ host ──▶ metrics
//!         text.rs                      ▲       builder.rs      model.rs
//!   trace of a simulated run ──────────┘
//!         rows.rs
//! ```
//!
//! A replay under Linux's own policy (`linux.rs`), with what `machine.rs` reads of the machine from the
//! recording, says how far replays are from what was recorded.
//!
//! A recorded schedule says when tasks ran. That is the work of the policy, not of the tasks, and it is not
//! replayed. Replayed are: what each task computed from blocking to blocking, which task it woke at which
//! point of its own progress, and how long it waited for things outside the recorded tasks.

mod builder;
mod fidelity;
mod linux;
mod machine;
mod members;
mod model;
mod outcome;
mod reading;
mod recording;
mod rows;
mod stamps;
mod text;

pub use fidelity::{ComparedFigure, Fidelity};
pub use linux::Kernel;
pub use machine::Machine;
pub use members::events_of;
pub use mete_policy::Nanoseconds;
pub use model::{Replay, Signal};
pub use outcome::{Outcome, RunError, Settings, Under, all_waits, as_recorded, run};
pub use reading::RecordingError;
pub use recording::{Action, Recording, Script, Step};
pub use text::{Event, LineError, Pid, RunningThread, parse_line};
