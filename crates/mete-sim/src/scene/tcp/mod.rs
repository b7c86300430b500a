//! Streams in the manner of TCP, from remote machines to clients: numbered segments, a congestion window,
//! a timer, acknowledgements that tell what came out of order.
//!
//! ```text
//!   Sender ──Segment{number, stamp}──▶ network, driver ──▶ Receiver ──in order──▶ task
//!      ▲  timer.rs: how long to wait                          │
//!      │  scoreboard.rs: what became of each segment          │
//!      └──Acknowledgement{next, taken, echo, held}────────────┘
//! ```
//!
//! Segments are counted, not bytes, and nothing opens or closes a connection: there is one between a remote
//! machine and a port for the whole run. What follows which document stands at each part. Loss is possible
//! only where the driver's network card has no room ([`DriverCosts`](super::DriverCosts)).

mod receiver;
mod scoreboard;
mod sender;
mod timer;

use mete_policy::Nanoseconds;

pub(super) use receiver::{Arrival, Receiver};
pub(super) use sender::Sender;
pub use sender::Troubles;

/// How many runs of segments an acknowledgement names (RFC 2018, §3: with time stamps three fit).
pub const MOST_RUNS: usize = 3;

/// Segments that have come before others that are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The first one's distance from the first that is missing.
    pub offset: u32,
    /// How many; 0: there is no such run.
    pub length: u32,
}

/// What a receiver says of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// All segments before this one have come.
    pub next: u64,
    /// So many have been taken by the task, so there is room for a window of segments from here on.
    pub taken: u64,
    /// When the first segment that it acknowledges was sent (RFC 7323, §4.3).
    pub echo_ns: Nanoseconds,
    /// What has come besides, lowest first.
    pub held: [Run; MOST_RUNS],
}
