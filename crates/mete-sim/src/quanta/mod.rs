//! The papers' simulator of proportional shares: clients that are always ready, one processor, time in
//! quanta, and how far each client's service is from what its share promises (VTRR paper, §2.1, §5.1).
//!
//! ```text
//!   seed, number of clients, sum of shares ──▶ shares ──▶ policy: pick, ran, pick, ran, … ──▶ errors
//! ```
//!
//! The *service-time error* of a client at time t is E = W − S/T × t: the service W that it had, minus its
//! share S of the sum T of all shares. Here it is an integer, E × T, in nanoseconds: nothing is rounded. The
//! cost of a decision does not depend on the number of clients, because the error of a waiting client falls
//! evenly. It is lowest just before the client runs and highest when it stops, so no other client has to be
//! looked at. Clients that wait when the schedule ends are looked at then.
//!
//! A *scheduling cycle* is T quanta (§3.1). Within it a policy with exact shares serves each client for S
//! quanta, so the schedule repeats, and its extremes repeat with it.
//!
//! ```
//! use mete_policy::{RoundRobin, Share};
//! use mete_sim::quanta::{QUANTUM_NS, Shares, run};
//!
//! let shares = Shares::new(vec![Share::ONE, Share::ONE])?;
//! let outcome = run(&mut RoundRobin::new(&shares.setup(0)), &shares, 1)?;
//! assert_eq!((outcome.errors.lowest_tu(), outcome.errors.highest_tu()), (-0.5, 0.5));
//! assert!(outcome.repeats);
//! # Ok::<(), mete_sim::quanta::QuantaError>(())
//! ```

mod experiment;
mod ledger;
mod shares;

use mete_policy::{ClientId, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Stop};

pub use experiment::{Experiment, Point, Tally};
pub use ledger::Errors;
use ledger::{Balance, Ledger};
pub use shares::Shares;

/// The papers' time unit: the slice of a client, 10 ms (VTRR paper, §4).
pub const QUANTUM_NS: Nanoseconds = Setup::for_clients(1).quantum_ns;

/// Why a schedule cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantaError {
    /// There must be a client to give shares to.
    #[error("a schedule needs one client at least")]
    NoClients,
    /// Every client has a share of at least one.
    #[error(
        "{clients} clients cannot have shares that add up to {total}: the sum must be {clients} or more, \
         and at most {most}"
    )]
    Sum {
        /// How many clients there should be.
        clients: u32,
        /// What their shares should add up to.
        total: u64,
        /// The largest sum of the shares of this number of clients.
        most: u64,
    },
    /// The products of service and shares do not fit 64 bits.
    #[error("{cycles} cycles of {total} quanta are too long for exact errors: simulate fewer")]
    TooLong {
        /// The sum of shares.
        total: u64,
        /// How many scheduling cycles were asked for.
        cycles: u32,
    },
    /// A policy broke its promise to pick a client when all clients are ready.
    #[error(
        "the policy {policy} picked no client, or one that does not exist, though all {clients} are ready"
    )]
    Idle {
        /// The policy's name.
        policy: &'static str,
        /// How many clients there are.
        clients: u32,
    },
}

/// The result of one schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The extremes of all clients' service-time errors.
    pub errors: Errors,
    /// The extremes of each client.
    pub clients: Vec<Errors>,
    /// How often the policy picked a client.
    pub decisions: u64,
    /// Whether every client has exactly its share at the end, so that the schedule repeats.
    pub repeats: bool,
}

/// Runs this number of scheduling cycles of a policy that has no clients yet and was made for
/// [`Shares::setup`]. Client n has the n-th share, and all clients are ready from the beginning.
///
/// # Errors
///
/// [`QuantaError::TooLong`], and [`QuantaError::Idle`] for a policy that breaks its promise.
pub fn run<P: Policy>(policy: &mut P, shares: &Shares, cycles: u32) -> Result<Outcome, QuantaError> {
    watch(policy, shares, cycles, |_| {})
}

/// A client's turn on the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The client that ran.
    pub client: ClientId,
    /// When it began.
    pub from_ns: Nanoseconds,
    /// How long it ran.
    pub ran_ns: Nanoseconds,
}

/// As [`run`], and reports each turn to `each`.
///
/// # Errors
///
/// As [`run`].
pub fn watch<P: Policy>(
    policy: &mut P,
    shares: &Shares,
    cycles: u32,
    mut each: impl FnMut(Turn),
) -> Result<Outcome, QuantaError> {
    let end = shares.cycles_ns(cycles)?;
    let mut ledger = Ledger::new(shares);
    admit(policy, shares);
    let tick_ns = policy.tick_ns();
    let (mut now, mut decisions) = (Nanoseconds::ZERO, 0);
    while now < end {
        let idle = QuantaError::Idle { policy: policy.name(), clients: shares.clients() };
        let Some(decision) = policy.pick(ProcessorId::new(0), now) else { return Err(idle) };
        // The last slice is cut off at the end of the schedule.
        let slice = decision.slice_ns.clamp(Nanoseconds::new(1), end - now);
        let (ran_ns, stop) = match tick_ns {
            None if slice < decision.slice_ns => (slice, Stop::Preempted),
            None => (slice, Stop::Expired),
            Some(tick) => ticked(policy, now, slice, tick.max(Nanoseconds::new(1))),
        };
        if !ledger.serve(decision.client, now, ran_ns) {
            return Err(idle);
        }
        each(Turn { client: decision.client, from_ns: now, ran_ns });
        now += ran_ns;
        policy.ran(decision.client, ran_ns, stop, now);
        decisions += 1;
    }
    let Balance { errors, clients, is_even: repeats } = ledger.close(now);
    Ok(Outcome { errors, clients, decisions, repeats })
}

fn admit(policy: &mut impl Policy, shares: &Shares) {
    for (client, &share) in (0..).map(ClientId::new).zip(shares.as_slice()) {
        policy.add(client, DomainIndex::ROOT, share, Nanoseconds::ZERO);
    }
    for client in ClientId::first(shares.clients()) {
        // No client runs yet that could give way.
        let _ = policy.wake(client, Nanoseconds::ZERO);
    }
}

/// A slice with the periodic interrupt in it: how long it lasts, and why it ends.
fn ticked<P: Policy>(
    policy: &mut P,
    from: Nanoseconds,
    slice: Nanoseconds,
    tick: Nanoseconds,
) -> (Nanoseconds, Stop) {
    let end = from + slice;
    // The policy's tick is due at multiples of its period, not at distances from the slice's beginning.
    let mut next = (from / tick + 1) * tick;
    while next <= end {
        if policy.tick(ProcessorId::new(0), next) {
            return (next - from, Stop::Preempted);
        }
        next += tick;
    }
    (slice, Stop::Expired)
}
