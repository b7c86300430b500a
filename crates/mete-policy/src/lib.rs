//! Scheduling policies: who runs next, where, and for how long. Pure code.
//!
//! A policy is a value (design decision D8). Whoever owns it, the live scheduler, a replayer or a
//! simulator, tells it what happened and carries out what it answers; none of them has a copy of
//! the logic.
//!
//! ```text
//!   log analysis ─┐                       ┌─▶ actuator (sched_ext, dispatcher, sched_setaffinity)
//!   trace replay ─┼─▶ what happened ─▶ policy ─▶ decision ─┼─▶ replay
//!   simulator    ─┘                       └─▶ simulated machine
//! ```
//!
//! What every policy in this crate keeps to, and what a new one has to:
//!
//! 1. **No clock and no I/O.** Time comes as an argument, in periods or nanoseconds. The same calls
//!    give the same answers. The crate has no `std`, so the compiler sees to it.
//! 2. **Identifiers are dense indices.** Clients, domains and processors are numbers from 0; all state
//!    lies in arrays that are made once, in the constructor. A decision allocates nothing.
//! 3. **No sequence of calls panics.** What makes no sense (a domain out of range, a slice too short)
//!    is read as "nothing happened". Sums saturate.
//! 4. **Numbers are integers**, shares of a processor in [`Permille`], so that results do not depend
//!    on the order of floating-point sums.
//! 5. **A decision is a proposal.** The owner may fail to carry it out and says so; the policy then
//!    stands where it stood before.
//!
//! There are two kinds of decision. A *placement* policy is asked once a period where domains
//! should run: [`affinity`]. A *dispatching* policy takes events (wake, block, ran for, tick, what a
//! guest was seen to do) and answers who runs next and for how long: everything that implements
//! [`Policy`], one module each, by name in [`CATALOG`].
//!
//! ```
//! use mete_policy::{CATALOG, Setup, Share, Stop};
//!
//! let mut policy = (CATALOG[0].make)(&Setup::for_clients(2));
//! for client in 0..2 {
//!     policy.add(client, 0, Share::ONE, 0);
//!     assert_eq!(policy.wake(client, 0), None, "there is nobody to be preempted");
//! }
//! let first = policy.pick(0, 0).expect("two are ready");
//! policy.ran(first.client, first.slice_ns, Stop::Expired, first.slice_ns);
//! let second = policy.pick(0, first.slice_ns).expect("two are ready");
//! assert_ne!(first.client, second.client);
//! ```

#![no_std]

extern crate alloc;

pub mod affinity;
pub mod bvt;
mod catalog;
pub mod credit;
pub mod drr;
pub mod eevdf;
mod eligible;
mod fair_queueing;
pub mod fair_share;
pub mod goodness;
pub mod group_ratio;
mod heap;
mod interface;
pub mod lottery;
mod observation;
mod occupancy;
mod progress;
mod queue;
mod ring;
mod roster;
pub mod round_robin;
pub mod stride;
mod virtual_clock;
mod virtual_time;
pub mod vtrr;
pub mod wf2q;
pub mod wfq;
pub mod wfq_linear;
pub mod wrr;

pub use affinity::{Affinity, Move, Period, Role};
pub use bvt::{Bvt, Settings as BvtSettings, Warp};
pub use catalog::{CATALOG, Entry, by_name};
pub use credit::{Credit, CreditSettings, TavsSettings};
pub use drr::DeficitRoundRobin;
pub use eevdf::Eevdf;
pub use fair_share::FairShare;
pub use goodness::Goodness;
pub use group_ratio::GroupRatio;
pub use interface::{ClientId, Decision, Grant, Nanoseconds, Policy, Setup, Share, Stop};
pub use lottery::Lottery;
pub use observation::{Event, Observation, RequestId, TaskId};
pub use round_robin::RoundRobin;
pub use stride::Stride;
pub use vtrr::{GroupVtrr, Reset, VirtualTime, Vtrr};
pub use wf2q::Wf2q;
pub use wfq::Wfq;
pub use wfq_linear::WfqLinear;
pub use wrr::WeightedRoundRobin;

/// A processor's number, dense from 0.
pub type ProcessorId = u16;
/// A domain's number, dense from 0.
pub type DomainIndex = u16;
/// Thousandths: of one processor where it is a share, of one task where it is a queue's length.
pub type Permille = u32;
