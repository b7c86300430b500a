//! `mete demo`: logs real processes and schedules them. Drivers, clients and hogs run without logging, with
//! logging, and with the scheduler acting, in turn. The results show what logging costs and what acting on
//! the logs gains. In a second act, crowds of threads have shares of a processor, with and without the
//! dispatcher (`second_act.rs`).
//!
//! ```text
//!   play ──▶ cast ──▶ drivers, clients, hogs (part/, processes of their own) ── count ──▶ board
//!    │                       │ probes                                                      │
//!    ├────▶ observe ◀────────┘                                                             │
//!    └────▶ alternate, summary ◀───────────────────────────────────────────────────────────┘
//!                     └──▶ show (tables), report (HTML)
//! ```
//!
//! It needs neither Arrow nor the simulator, so it builds quickly. [`Requests`] lets `mete bench`
//! measure with the same processes.

#![cfg(target_os = "linux")]

mod alternate;
mod board;
mod cast;
mod crowds;
mod latencies;
mod observe;
pub mod part;
mod play;
mod report;
mod requests;
mod second_act;
mod share_show;
mod show;
mod summary;

pub use play::run;
pub use requests::{Piece, Placement, Requests, Setting};
