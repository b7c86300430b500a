//! What a run showed of one client.

use mete_policy::Nanoseconds;

use crate::metrics::Latencies;

/// What one client had.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientReport {
    /// Its name.
    pub name: String,
    /// Its domain's name; empty for the root.
    pub domain: String,
    /// Its own share.
    pub share: u32,
    /// The part of all processors that its share and its domain's share promise while all clients are ready.
    pub wanted: f64,
    /// The part of all processors that it had.
    pub got: f64,
    /// The processor time that it had.
    pub ran_ns: Nanoseconds,
    /// How often a processor switched to it from another client.
    pub switches: u64,
    /// How often it woke.
    pub wakes: u64,
    /// From waking to running.
    pub wake_to_run: Option<Latencies>,
    /// From waking to waiting again.
    pub wake_to_block: Option<Latencies>,
    /// From asking to being answered, where the model knows which client asks.
    pub response: Option<Latencies>,
    /// The longest time that it was ready and did not run.
    pub longest_wait_ns: Nanoseconds,
    /// How often it was ready without running for longer than
    /// [`Scenario::starvation_ns`](crate::Scenario::starvation_ns).
    pub starved: u64,
    /// The sum of these times, without the first
    /// [`Scenario::starvation_ns`](crate::Scenario::starvation_ns) of each.
    pub starved_ns: Nanoseconds,
    /// How far its service is from what its share promises.
    pub error: ServiceError,
    /// How long it spun for locks: processor time without any progress. It is counted up to
    /// when the client was last told of its progress.
    pub spun_ns: Nanoseconds,
    /// How often its program, or its guest's programs, reported a unit of work as done. For a guest with
    /// several virtual processors, the first one has them all.
    pub done: u64,
}

/// The service-time error of a client: the service that it had since measuring began, minus the service that
/// the fluid server of [`Fluid`](crate::metrics::Fluid) would have given it. It is rounded to the nearest
/// nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceError {
    /// The error at the end.
    pub last_ns: i64,
    /// The lowest error, just before a turn: how far the client was behind. Never above 0.
    pub lowest_ns: i64,
    /// The highest error, at the end of a turn: how far the client was ahead. Never below 0.
    pub highest_ns: i64,
}
