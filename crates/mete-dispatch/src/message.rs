//! What the manager is told of clients and shares, and when.

use mete_log::clock::monotonic_ns;
use mete_policy::{ClientId, DomainIndex, Nanoseconds, Share};
use mete_sched::actuator::Mask;

/// What the manager is told by the thread that looks for clients.
#[derive(Debug)]
pub(crate) enum Message<T> {
    /// A thread that is to be dispatched.
    Join { number: ClientId, thread: T, domain: DomainIndex, share: Share, allowed: u64 },
    /// One that no longer is: it has ended, or belongs to no domain any more.
    Leave { number: ClientId },
    /// A client may run on other processors than before, a bit each.
    Allowed { number: ClientId, allowed: u64 },
    /// A client can run, and the programs in the kernel take it for blocked.
    Awake { number: ClientId },
    /// The processors on which clients may run.
    Processors(Box<Mask>),
    /// Another share of a domain, and what the clients of all domains have then.
    Shares { domain: DomainIndex, share: Share, clients: Vec<(ClientId, Share)> },
}

/// The present time, by the clock of the rows.
pub(crate) fn now() -> Nanoseconds {
    Nanoseconds::new(monotonic_ns())
}
