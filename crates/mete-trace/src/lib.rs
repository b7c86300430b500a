//! Recording: events of any layout go through per-processor buffers into a trace directory, and no event is lost
//! silently. "The paper" is KLogger; comments name its sections where something is implemented.
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
//! 1. **Every event that occurs on a processor takes a serial number, even if it finds no room.** A gap in the serial
//!    numbers is a loss of exactly that size (KLOG-6): in the buffer, in the file and in every [`Account`].
//! 2. **Nothing that was read from shared memory or from a file is trusted.** It is copied, then checked. If it is
//!    wrong, the error names the place, and the parts around it are still read.
//! 3. **Whatever happens to the recorder, the blocks that it wrote can be read.** A block is closed before it is
//!    written and never changed afterwards.
//! 4. **The producer pays least**: no lock, no system call, no other processor's memory.
//!
//! To record: make a [`Memory`], start a [`Recorder`], give a [`Producer`] to the code that has events, and stop. To
//! read: open a [`Trace`] and go through its [`Merge`]. `docs/trace-format.md` describes every byte of the files.
//! `include/mete_trace.h` describes the buffer, for producers in C and eBPF.
//!
//! | phase | modules |
//! |---|---|
//! | record an event | [`producer`], [`protocol`], [`buffer`], [`layout`], [`channel`] and [`invitation`] for programs |
//! | flush | `flush`, [`consumer`], [`block`], [`sink`] |
//! | keep a recording | [`recorder`], [`description`], `directory`, [`switch`], [`missed`], [`names`], [`symbols`] |
//! | read a trace | [`trace`], [`merge`], [`reader`], [`mod@file`], [`filter`], [`value`] |
//! ```no_run
//! use std::sync::Arc;
//! use mete_trace::{ClockSource, Description, Item, Filter, Memory, Buffers, Options, Producer, Recorder, Trace};
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
pub mod block;
#[cfg(not(loom))]
pub mod buffer;
#[cfg(not(loom))]
pub mod channel;
#[cfg(not(loom))]
pub mod completeness;
#[cfg(not(loom))]
pub mod consumer;
#[cfg(not(loom))]
pub mod description;
#[cfg(not(loom))]
mod directory;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
pub mod file;
#[cfg(not(loom))]
pub mod filter;
#[cfg(not(loom))]
mod flush;
#[cfg(not(loom))]
pub mod invitation;
#[cfg(not(loom))]
pub mod memory;
#[cfg(not(loom))]
pub mod merge;
#[cfg(not(loom))]
pub mod missed;
#[cfg(not(loom))]
pub mod names;
#[cfg(not(loom))]
mod pace;
#[cfg(not(loom))]
pub mod producer;
#[cfg(not(loom))]
pub mod reader;
#[cfg(not(loom))]
pub mod recorder;
#[cfg(not(loom))]
mod schema;
#[cfg(not(loom))]
pub mod sink;
#[cfg(not(loom))]
pub mod switch;
#[cfg(not(loom))]
pub mod symbols;
#[cfg(not(loom))]
pub mod thread;
#[cfg(not(loom))]
pub mod together;
#[cfg(not(loom))]
pub mod trace;
#[cfg(not(loom))]
pub mod value;

#[cfg(not(loom))]
pub use buffer::Buffer;
#[cfg(not(loom))]
pub use channel::Channel;
#[cfg(not(loom))]
pub use completeness::Account;
#[cfg(not(loom))]
pub use consumer::{Consumer, Drained, Garbled};
#[cfg(not(loom))]
pub use description::{ClockSource, Description, EventLayout, FieldKind, FieldLayout, TraceDescription};
#[cfg(not(loom))]
pub use directory::{FormerTrace, check as check_directory};
#[cfg(not(loom))]
pub use file::ReadError;
#[cfg(not(loom))]
pub use filter::Filter;
#[cfg(not(loom))]
pub use flush::Report;
#[cfg(not(loom))]
pub use invitation::Invitation;
#[cfg(not(loom))]
pub use memory::{Buffers, Memory};
#[cfg(not(loom))]
pub use merge::Merge;
#[cfg(not(loom))]
pub use missed::MissedRuns;
#[cfg(not(loom))]
pub use names::ThreadName;
#[cfg(not(loom))]
pub use producer::{Outcome, Producer};
#[cfg(not(loom))]
pub use reader::{Gap, Item, ProcessorReader};
pub use record::Record;
#[cfg(not(loom))]
pub use recorder::{Keep, Options, RecordError, Recorder};
#[cfg(not(loom))]
pub use switch::{Switch, Switches};
#[cfg(not(loom))]
pub use symbols::{AddressName, Symbols};
#[cfg(not(loom))]
pub use together::Together;
#[cfg(not(loom))]
pub use trace::Trace;
#[cfg(not(loom))]
pub use value::Value;
