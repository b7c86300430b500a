//! The log facility: shared memory in which components log what schedulers need, and which
//! schedulers read in place.
//!
//! One *log area* belongs to one component on one processor. A producer, the *handler*, writes
//! fixed-size rows into cyclic *log files* inside it; a scheduler configures the files through
//! *control registers* and the *domain table* in the same memory, and reads the rows without a
//! lock. Nothing else connects the two sides.
//!
//! ```text
//!   scheduler                         log area                          component
//!   ─────────                 ┌──────────────────────────┐              ─────────
//!   Plan::apply ── writes ──▶ │ control registers        │ ◀── obeys ── handler
//!                             │ domain table             │              (portable, rseq,
//!   Reader::poll ◀─ copies ── │ log files                │ ◀── rows ──   BPF C)
//!                             └──────────────────────────┘
//! ```
//!
//! Principles, in the order in which they win:
//!
//! 1. **No word in the area is trusted.** Whatever bits stand in it, the producer writes inside
//!    the area or not at all, and the reader returns good rows or an error (LOG-11).
//! 2. **The logging path takes no lock, writes no other processor's memory and makes no system
//!    call** (LOG-9). The row is written first; storing the index commits it.
//! 3. **Loss is exact.** A file counts the rows ever written; what a reader could not get is the
//!    difference of two numbers (LOG-10, design decision D2).
//!
//! Sources: "Event logging to support resource scheduling" (below "the short paper") and the
//! thesis behind it ("the thesis"); sections are cited where something is implemented.
//!
//! The core needs neither `std` nor an allocator; the feature `std` adds what an operating system
//! is needed for: shared [`region`]s, [`plan`]s and the [`clock`].

#![cfg_attr(not(any(feature = "std", test, loom)), no_std)]

#[cfg(not(loom))]
pub mod area;
#[cfg(all(feature = "std", not(loom)))]
pub mod bindings;
#[cfg(all(feature = "std", not(loom)))]
pub mod clock;
pub mod control;
#[cfg(not(loom))]
mod copy;
#[cfg(not(loom))]
pub mod handler;
pub mod layout;
pub mod letters;
#[cfg(all(feature = "std", not(loom)))]
pub mod plan;
#[cfg(not(loom))]
pub mod reader;
#[cfg(all(feature = "std", not(loom)))]
pub mod region;
pub mod ring;
pub mod row;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(loom), not(miri)))]
pub mod rseq;
mod sync;

#[cfg(not(loom))]
pub use area::Area;
pub use control::{Control, Entries, Stamp};
#[cfg(not(loom))]
pub use handler::{Outcome, Record};
pub use layout::Shape;
#[cfg(all(feature = "std", not(loom)))]
pub use plan::{FileSpec, Plan, PlanError};
#[cfg(not(loom))]
pub use reader::{Cursor, Poll, ReadError, Reader, Rows};
#[cfg(all(feature = "std", not(loom)))]
pub use region::{Region, RegionError};
pub use row::Row;

/// A log file's number within its area. File 0 is the null file: routing to it switches a pair off.
pub type FileId = u16;
/// An event's number within its component.
pub type EventId = u16;
/// An accounting domain's number (thesis §3.5). Domain 0 is the default domain: whoever is bound to none.
pub type DomainId = u16;

/// The correspondent of an event that has none.
pub const NO_DOMAIN: DomainId = u16::MAX;
