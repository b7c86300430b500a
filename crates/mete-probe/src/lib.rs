//! The user-level component: probes in programs. They are off until a scheduler switches them on.
//!
//! A program declares [events](event!) and puts probes where they happen. It runs as it did before, because a
//! probe that is off is one no-op. A scheduler that connects hands over memory for the logs, switches events
//! on, and reads the rows in place; nothing is copied or sent.
//!
//! ```text
//!        program start          scheduler connects       Enable              scheduler gone
//!   ──────────┬────────────────────────┬────────────────────┬──────────────────────┬──────▶
//!    sections are registered,     its memory is        sites become         sites become no-ops,
//!    one thread listens at     mapped where the      jumps, rows are      zero pages replace the
//!    DIR/PID.sock              handlers will log     written in place     memory; listen again
//! ```
//!
//! ```
//! use mete_probe::{enter, event, exit, probe, sample};
//!
//! event! {
//!     static REQUEST: access "request";
//!     static SERVICE: phase "service";
//!     static QUEUE: sample "queue length";
//! }
//!
//! fn serve(client: u32, waiting: usize) {
//!     let domain = mete_probe::domain_of_process(client).unwrap_or(mete_probe::NO_DOMAIN);
//!     sample!(QUEUE, waiting as u64);
//!     probe!(REQUEST, domain);
//!     let phase = enter!(SERVICE);
//!     // … the work …
//!     exit!(SERVICE, phase, domain);
//! }
//! serve(1, 0);
//! ```
//!
//! The principles. Where two of them conflict, the first one wins:
//!
//! 1. **The program comes first.** Whatever fails in this library, whatever the scheduler sends or writes,
//!    and whichever process is killed: the program runs as if it had no probes (LOG-11).
//! 2. **Off means free** (LOG-2). **No probe runs without a reader.**
//! 3. **The scheduler owns the memory** (LOG-12) and names the domains (LOG-6).
//!
//! The scheduler's side of the same protocol is [`attach`]. "The thesis" and the section numbers refer to the
//! work on event logging for resource scheduling that the facility implements.

#![cfg(target_os = "linux")]

pub mod abi;
pub mod attach;
mod channel;
mod debug;
mod descriptor;
pub mod directory;
mod domain;
mod endpoint;
pub mod event;
pub mod finder;
mod flag;
mod fork;
mod handler;
mod listener;
mod memory;
mod patch;
mod precedence;
mod processors;
mod publish;
pub mod recursive;
mod registry;
mod residence;
mod sequences;
mod session;
pub mod site;
mod slot;
pub mod stale;
mod state;
pub mod wire;

/// The atomics of [`flag`], which loom replaces in its model.
mod sync {
    pub(crate) use core::sync::atomic::{AtomicBool, AtomicU16, Ordering, fence};
}

pub use domain::{set_domain, set_process_domain};
pub use event::{Event, ProbeKind};
pub use listener::withdraw;
pub use memory::domain_of_process;
pub use mete_log::{DomainId, EventId, NO_DOMAIN};
pub use registry::MAX_EVENTS;
