//! What logging and deciding cost on this machine, and the papers' figures measured again (LOG-17,
//! VTRR-4 to VTRR-6, TAVS-8, KLOG-9).
//!
//! [`bench()`] measures each part beside its peers and judges it by the project's bars; the studies
//! ([`study::STUDIES`]) measure or simulate what the papers show, and say where the results agree with the papers.
//!
//! ```text
//!   variants:   none · disabled · ours · peer   none · disabled · ours · peer   none · …
//!               └────────── a round ─────────┘
//!                 differences within rounds ──▶ medians and quartiles ──▶ rows ──▶ verdicts
//! ```
//!
//! Principles:
//!
//! 1. **Interleaved.** Every other activity of the machine meets all variants alike. Each round first
//!    measures the variant that the others are compared with.
//! 2. **Results stay as they are.** A bar that is not met is printed as not met. A measurement that this
//!    machine does not allow becomes a row that says why.
//! 3. **Nothing stays on.** A value holds each thing that is switched on, attached, started or pinned, and
//!    undoes it when it is dropped.

#![cfg(target_os = "linux")]

mod bench;
mod beside;
mod busy;
mod child;
mod context;
mod crew;
pub mod figure;
mod interleave;
mod kernel;
mod load;
pub mod machine;
pub mod pairs;
mod policy;
mod polling;
mod processor;
mod progress;
mod reader;
mod realtime;
mod reason;
mod replay;
pub mod report;
mod requests;
mod scratch;
pub mod statistics;
pub mod study;
pub mod synthetic;
mod text;
mod trace;
mod traffic;
mod user;
mod watch;

pub use bench::{Options, bench, groups};
pub use beside::{Beside, BesideError};
pub use figure::{Figure, Verdict};
pub use polling::{MakeScheduler, Turn};
pub use progress::Progress;
pub use reason::Reason;
pub use replay::recorded_schedule;
pub use report::{Bar, Met, Report, Row};
pub use requests::{MakeRequests, Piece, Requests, Setting};
