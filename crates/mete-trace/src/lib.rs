//! Recording: events of any layout go through per-processor buffers into a trace directory, and no event is
//! lost silently. "The paper" is KLogger; comments name its sections where something is implemented.
//!
//! ```text
//!   producers                buffer                flush thread             trace directory
//!   ─────────        ┌────────────────────┐        ────────────           description.json
//!   BPF C, C, Rust ─▶│ main part          │─ copy ─▶ blocks ─── write ──▶ processor-0.trace
//!   one locked       │ ── low-water mark  │        (one a processor)      processor-1.trace
//!   instruction      │ reserve part       │              │                       │
//!                    └────────────────────┘              ▼                       ▼
//!                                                flight recorder's       Trace ─▶ Merge ─▶ records
//!                                                memory, until dumped                     and gaps
//! ```
//!
//! Principles, in order of precedence:
//!
//! 1. **Every event that occurs on a processor takes a serial number, even if it finds no room.** A gap in
//!    the serial numbers is a loss of exactly that size (KLOG-6): in the buffer, in the file and in every
//!    [`Account`].
//! 2. **Nothing that was read from shared memory or from a file is trusted.** It is copied, then checked. If
//!    it is wrong, the error names the place, and the parts around it are still read.
//! 3. **Whatever happens to the recorder, the blocks that it wrote can be read.** A block is closed before it
//!    is written and never changed afterwards.
//! 4. **The producer pays least**: no lock, no system call, no other processor's memory.
//!
//! To record: make a [`Memory`], start a [`Recorder`], give a [`Producer`] to the code that has events, and
//! stop. To read: open a [`Trace`] and go through its [`Merge`]. `docs/trace-format.md` describes every byte
//! of the files. `include/mete_trace.h` describes the buffer, for producers in C and eBPF.
//!
//! | phase | modules |
//! |---|---|
//! | record an event | [`producer`], [`protocol`], [`buffer`], [`layout`], [`channel`] and [`invitation`] for programs |
//! | flush | `flush`, [`consumer`], [`block`], [`sink`] |
//! | keep a recording | [`recorder`], [`description`], `directory`, [`switch`], [`missed`], [`names`], [`symbols`] |
//! | read a trace | [`trace`], [`merge`], [`reader`], [`mod@file`], [`filter`], [`value`] |
//! | read it by names | [`named`], [`process_names`] |
//! ```no_run
//! use std::sync::Arc;
//! use mete_trace::{
//!     Buffers, ClockSource, Description, Filter, Item, Memory, Options, Producer, Recorder, Trace,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let description = Description::default();
//! let memory = Arc::new(Memory::new(2, 22, 10)?);
//! let recorder = Recorder::start(Arc::clone(&memory), description, Options::directory("trace"))?;
//! let producer = Producer::new(memory.buffer(0));
//! let _ = producer.record(0, &[42], || ClockSource::Counter.now());
//! recorder.stop()?;
//!
//! let mut merged = Trace::open("trace")?.merge(Filter::default());
//! while let Some(item) = merged.next() {
//!     match item? {
//!         Item::Record(record) => println!("{} {}", record.time, record.event),
//!         Item::Lost(gap) => println!("{} events are missing", gap.events),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Under loom only the parts of the buffer's protocol exist: [`layout`], [`protocol`], [`record`].

pub mod layout;
pub mod protocol;
pub mod record;
mod sync;

#[cfg(not(loom))]
#[path = "."]
mod live {
    pub mod block;
    pub mod buffer;
    pub mod channel;
    pub mod completeness;
    pub mod consumer;
    pub mod description;
    pub(crate) mod directory;
    pub(crate) mod error;
    pub mod file;
    pub mod filter;
    pub(crate) mod flush;
    pub(crate) mod gap;
    pub mod invitation;
    pub mod memory;
    pub mod merge;
    pub mod missed;
    pub mod named;
    pub mod names;
    pub(crate) mod pace;
    pub mod process_names;
    pub mod producer;
    pub mod reader;
    pub mod recorder;
    pub(crate) mod schema;
    pub mod sink;
    pub mod switch;
    pub mod symbols;
    pub(crate) mod tally;
    pub mod thread;
    pub mod together;
    pub mod trace;
    pub mod value;

    pub use buffer::Buffer;
    pub use channel::Channel;
    pub use completeness::Account;
    pub use consumer::{Consumer, Drained, Garbled};
    pub use description::{ClockSource, Description, EventLayout, FieldKind, FieldLayout, TraceDescription};
    pub use directory::{FormerTrace, check as check_directory};
    pub use file::ReadError;
    pub use filter::Filter;
    pub use flush::Report;
    pub use gap::Gap;
    pub use invitation::Invitation;
    pub use memory::{Buffers, Memory};
    pub use merge::Merge;
    pub use missed::MissedRuns;
    pub use named::{NamedEvent, NamedItem, NamedTrace, NamedTraceError};
    pub use names::ThreadName;
    pub use process_names::ProcessNames;
    pub use producer::{Outcome, Producer};
    pub use reader::{Item, ProcessorReader};
    pub use recorder::{Keep, Options, RecordError, Recorder};
    pub use switch::{Switch, Switches};
    pub use symbols::{AddressName, Symbols};
    pub use together::Together;
    pub use trace::Trace;
    pub use value::Value;

    pub use mete_log::Ticks;
}

#[cfg(not(loom))]
pub use live::*;
pub use record::Record;
