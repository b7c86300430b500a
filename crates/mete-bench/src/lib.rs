//! What logging and deciding cost on this machine, beside what its peers cost (LOG-17, VTRR-4, VTRR-5).
//!
//! [`bench()`] measures each part beside its peers and judges it by the project's bars. The loads and
//! recordings are public: studies of the papers' figures use them, too. How it measures is in `mete-measure`.
//!
//! | phase | modules |
//! |---|---|
//! | what is measured | [`user`], [`kernel`], [`policy`], `reader`, `text`, `polling`, `requests` |
//! | what gives work | [`load`], [`traffic`], [`busy`], [`crew`], [`child`], [`synthetic`] |
//! | what is recorded | [`recording`], `tracing_mount` |
//! | what watches | [`realtime`], [`watch`] |
//! | what all share | [`bench()`], `context`, [`scratch`], `background` |
//! | policies in the simulator | [`beside`] |
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

mod background;
mod bench;
pub mod beside;
pub mod busy;
pub mod child;
mod context;
pub mod crew;
pub mod kernel;
pub mod load;
pub mod policy;
mod polling;
mod reader;
pub mod realtime;
pub mod recording;
mod requests;
pub mod scratch;
pub mod synthetic;
mod text;
mod tracing_mount;
pub mod traffic;
pub mod user;
pub mod watch;

pub use bench::{bench, groups};
pub use beside::{Beside, BesideError};
pub use context::{MakeScheduler, Options, Turn};
