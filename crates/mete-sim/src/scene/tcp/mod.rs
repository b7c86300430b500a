//! Streams in the manner of TCP, from remote machines to clients: numbered segments, a congestion window, a
//! timer, and acknowledgements that say what came out of order.
//!
//! ```text
//!   Sender ──Segment{number, stamp}──▶ network, driver ──▶ Receiver ──in order──▶ task
//!      ▲  timer.rs: how long to wait                          │
//!      │  scoreboard.rs: what became of each segment          │
//!      └──Acknowledgement{next, taken, echo, held}────────────┘
//! ```
//!
//! Segments are counted, not bytes. Nothing opens or closes a connection: there is one between a remote
//! machine and a port for the whole run. Each part names the document that it follows. Loss is possible only
//! where the driver's network card has no room ([`DriverCosts`](super::DriverCosts)).

mod receiver;
mod scoreboard;
mod sender;
mod timer;

pub(super) use receiver::{Arrival, Receiver};
pub(super) use sender::Sender;
pub use sender::Troubles;
