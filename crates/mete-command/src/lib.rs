//! What the programs that people run have in common: how they read a command line, print results, show
//! progress, tell failures and are stopped.
//!
//! ```text
//!   arguments ── command_line, value ──▶ work ──▶ output, table ──▶ stdout
//!                                         └── progress, failure ──▶ stderr
//!   Ctrl-C ─────────── interrupt ─────────┘
//! ```
//!
//! Conventions of all programs:
//!
//! - Results go to stdout, everything else to stderr. With `--json`, the results are one JSON object a line.
//! - Ctrl-C ends a run with the results so far. The exit status is then [`STOPPED`](status::STOPPED), unless
//!   the run has no other end. [`status`] has all exit statuses.
//! - Where a service manager has started a program that stays, [`service`] tells it how that goes.
//! - Names that other users chose control no terminal.

#![cfg(target_os = "linux")]

pub mod command_line;
pub mod failure;
pub mod interrupt;
pub mod lab;
pub mod output;
pub mod progress;
pub mod service;
pub mod status;
pub mod table;
pub mod terminal;
pub mod user;
pub mod value;
