//! What logging and deciding cost on this machine, beside what its peers cost (LOG-17, VTRR-4, VTRR-5).
//!
//! [`bench()`] measures each part beside its peers and judges it by the project's bars. The other modules are what it
//! measures with, and what studies of the papers' figures measure with, too.
//!
//! ```text
//!   variants:   none · disabled · ours · peer   none · disabled · ours · peer   none · …
//!               └────────── a round ─────────┘
//!                 differences within rounds ──▶ medians and quartiles ──▶ rows ──▶ verdicts
//! ```
//!
//! | phase | modules |
//! |---|---|
//! | what is measured | [`user`], [`kernel`], [`policy`], `reader`, `text`, [`polling`], [`requests`] |
//! | what gives work | [`load`], [`traffic`], [`busy`], [`crew`], [`child`], [`synthetic`], [`recording`] |
//! | how it is measured | [`processor`], [`realtime`], [`watch`], [`interleave`], [`pairs`], [`statistics`] |
//! | what comes out | [`report`], [`reason`], [`machine`]; [`beside`] for policies in the simulator |
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
pub mod beside;
pub mod busy;
pub mod child;
mod context;
pub mod crew;
pub mod interleave;
pub mod kernel;
pub mod load;
pub mod machine;
pub mod pairs;
pub mod policy;
pub mod polling;
pub mod processor;
mod reader;
pub mod realtime;
pub mod reason;
mod recorded;
pub mod recording;
pub mod report;
pub mod requests;
pub mod scratch;
pub mod statistics;
pub mod synthetic;
mod text;
mod tracing_mount;
pub mod traffic;
pub mod user;
pub mod watch;

pub use bench::{Options, bench, groups};
pub use beside::{Beside, BesideError};
pub use polling::{MakeScheduler, Turn};
pub use reason::Reason;
pub use report::{Bar, Met, Report, Row};
pub use requests::{MakeRequests, Piece, Requests, Setting};
