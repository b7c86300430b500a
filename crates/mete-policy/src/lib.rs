//! Scheduling policies: which client runs next, where, and for how long. Pure code.
//!
//! A policy is a value (design decision D8). Its owner is a live scheduler, the dispatcher, a replayer or a
//! simulator; one policy also runs inside the kernel, in C. The owner tells the policy what happened and
//! carries out what the policy answers. No owner has a copy of the logic.
//!
//! ```text
//!   log analysis ──┐                                      ┌──▶ processor masks
//!   kernel's rows ─┼─▶ what happened ─▶ policy ─▶ decision ─┼──▶ scheduling classes
//!   trace replay ──┤                                      ├──▶ replay
//!   simulator ─────┘                                      └──▶ simulated machine
//! ```
//!
//! Every policy in this crate keeps to these rules, and a new policy has to:
//!
//! 1. **No clock and no I/O.** Time comes as an argument, in periods or nanoseconds. The same calls
//!    give the same answers. The crate has no `std`, so the compiler enforces this rule.
//! 2. **Identifiers are dense indices.** Clients, domains and processors are numbers from 0. All state
//!    lies in arrays that the constructor allocates. A decision allocates nothing.
//! 3. **No sequence of calls panics.** A call that makes no sense (a domain out of range, a slice too short)
//!    is read as "nothing happened". Sums saturate.
//! 4. **Numbers are integers.** Shares of a processor are in [`Permille`]. So results do not depend
//!    on the order of floating-point sums.
//! 5. **A decision is a proposal.** If the owner cannot carry it out, the owner says so, and the policy then
//!    stands where it stood before.
//!
//! There are two kinds of decision. A *placement* policy is asked once a period where domains should run:
//! [`affinity`]. A *dispatching* policy takes events (a client woke, blocked, or ran for a time; a tick;
//! something that a guest was seen to do) and answers which client runs next and for how long. Dispatching
//! policies implement [`Policy`], have one module each, and are listed by name in [`CATALOG`].
//!
//! ```
//! use mete_policy::{CATALOG, ClientId, DomainIndex, Nanoseconds, ProcessorId, Setup, Share, Stop};
//!
//! let mut policy = (CATALOG[0].make)(&Setup::for_clients(2));
//! for client in ClientId::first(2) {
//!     policy.add(client, DomainIndex::ROOT, Share::ONE, Nanoseconds::ZERO);
//!     assert_eq!(policy.wake(client, Nanoseconds::ZERO), None, "no client runs that could be preempted");
//! }
//! let processor = ProcessorId::new(0);
//! let first = policy.pick(processor, Nanoseconds::ZERO).expect("two are ready");
//! policy.ran(first.client, first.slice_ns, Stop::Expired, first.slice_ns);
//! let second = policy.pick(processor, first.slice_ns).expect("two are ready");
//! assert_ne!(first.client, second.client);
//! ```

#![no_std]

extern crate alloc;

pub mod affinity;
pub mod bvt;
mod catalog;
pub mod credit;
mod distributed;
pub mod drr;
pub mod eevdf;
mod eligible;
mod fair_queueing;
pub mod fair_share;
pub mod goodness;
pub mod group_ratio;
mod heap;
mod id;
mod interface;
mod kernel_vtrr;
pub mod lottery;
mod nanoseconds;
mod observation;
mod occupancy;
mod permille;
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
pub use distributed::DistributedVtrr;
pub use drr::DeficitRoundRobin;
pub use eevdf::Eevdf;
pub use fair_share::FairShare;
pub use goodness::Goodness;
pub use group_ratio::GroupRatio;
pub use id::{ClientId, DomainIndex, ProcessorId, RequestId, TaskId};
pub use interface::{Decision, Grant, Policy, Setup, Share, Stop};
pub use kernel_vtrr::KernelVtrr;
pub use lottery::Lottery;
pub use nanoseconds::Nanoseconds;
pub use observation::{Causes, Event, Observation};
pub use permille::Permille;
pub use round_robin::RoundRobin;
pub use stride::Stride;
pub use vtrr::{GroupVtrr, Reset, VirtualTime, Vtrr};
pub use wf2q::Wf2q;
pub use wfq::Wfq;
pub use wfq_linear::WfqLinear;
pub use wrr::WeightedRoundRobin;
