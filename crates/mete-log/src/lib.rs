//! The log facility: shared memory in which components log what schedulers need, and which
//! schedulers read in place.
//!
//! One *log area* belongs to one component on one processor. A producer, the *handler*, writes
//! fixed-size rows into cyclic *log files* in the area. A scheduler configures the files through
//! *control registers* and the *domain table* in the same memory, and reads the rows without a
//! lock. Nothing else connects the two sides.
//!
//! ```text
//!   scheduler                         log area                          component
//!   ─────────                 ┌──────────────────────────┐              ─────────
//!   Plan::apply ── writes ──▶ │ control registers        │ ◀── obeys ── handler
//!                             │ domain table             │              (portable, rseq,
//!   Cursor::poll ◀─ copies ── │ log files                │ ◀── rows ──   BPF C)
//!                             └──────────────────────────┘
//! ```
//!
//! The principles. Where two of them conflict, the first one wins:
//!
//! 1. **No word in the area is trusted.** Whatever bits the area holds, the producer writes inside
//!    the area or not at all, and the reader returns good rows or an error (LOG-11).
//! 2. **The logging path takes no lock, writes to no other processor's memory and makes no system
//!    call** (LOG-9). The row is written first; storing the index commits it.
//! 3. **Loss is exact.** A file counts the rows that were ever written. The number of rows that a
//!    reader could not get is the difference of two numbers (LOG-10, design decision D2).
//!
//! The sources are "Event logging to support resource scheduling" (below: "the short paper") and the
//! thesis that it is based on ("the thesis"). Sections are cited where the code implements them.
//!
//! The core needs neither `std` nor an allocator. The feature `std` adds what needs an operating
//! system: shared [`region`]s in [`sealed`] memory, [`plan`]s and the [`clock`].

#![cfg_attr(not(any(feature = "std", test, loom)), no_std)]

pub mod control;
mod id;
pub mod layout;
pub mod ring;
pub mod row;
mod sync;
mod ticks;

/// What runs on the machine's own atomics. Under loom only the ring and what it needs are built:
/// loom checks the ring's memory ordering with atomics of its own, which no shared memory can hold.
// The path keeps the files of the inline modules in `src/`.
#[cfg(not(loom))]
#[path = "."]
mod live {
    pub mod area;
    pub(crate) mod copy;
    pub mod handler;
    pub mod reader;
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    pub mod rseq;

    pub use area::Area;
    pub use handler::{Outcome, Record};
    pub use reader::{Cursor, Poll, ReadError, Rows};

    /// What needs an operating system.
    #[cfg(feature = "std")]
    #[path = "."]
    mod hosted {
        pub mod bindings;
        pub mod clock;
        pub mod plan;
        pub mod region;
        pub mod sealed;

        pub use plan::{FileSpec, Plan, PlanError};
        pub use region::{Region, RegionError};
    }
    #[cfg(feature = "std")]
    pub use hosted::*;
}

pub use control::{Control, Entries, Stamp};
pub use id::{DomainId, EventId, FileId, NO_DOMAIN};
pub use layout::Shape;
#[cfg(not(loom))]
pub use live::*;
pub use row::Row;
pub use ticks::Ticks;
