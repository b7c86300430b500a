//! The recorder: the events of a schema, from the kernel, from programs and from the probe points of
//! programs, into one trace.
//!
//! ```text
//!   sources ──▶ RecordedSchema ──▶ Plan ──▶ Session ──▶ Summary
//!                (fits the kernel)            │  ▲
//!                                             │  └── Parameters (files), switches, requests to dump
//!      kernel programs ─┐                     │
//!      the command ─────┼── Origin: buffers ──┴──▶ trace directory, or memory that is dumped (flight recorder)
//!      probe points ────┘
//! ```
//!
//! What a caller does, in this order:
//!
//! 1. Read a schema that fits the running kernel: [`RecordedSchema::read`].
//! 2. Say what is to be recorded and where: [`Plan`].
//! 3. Begin: [`Session::begin`]. From then on, events are recorded.
//! 4. Call [`Session::do_what_is_due`] every 20 ms or so until the recording is over. Whatever people should
//!    know meanwhile comes from there as a [`Notice`].
//! 5. End: [`Session::end`], which returns a [`Summary`]. [`Session::discard`] leaves nothing instead.
//!
//! The crate prints nothing and reads no options. It loads programs into the kernel, which needs root, only
//! if the schema has points there.

mod bound;
mod error;
mod flight;
mod notice;
mod origin;
mod parameters;
mod plan;
mod probes;
mod schema;
mod session;
mod summary;
mod switches;

pub use error::RecordingError;
pub use notice::{DumpReason, Notice};
pub use parameters::{Parameters, mount, parse_low_water};
pub use plan::{FlightPlan, Plan};
pub use schema::RecordedSchema;
pub use session::Session;
pub use summary::{Ended, Summary};
pub use switches::Switches;
