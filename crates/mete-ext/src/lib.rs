//! The sched_ext component: a policy schedules all ordinary tasks, inside the kernel or from outside it.
//!
//! **Inside** ([`GroupScheduler`]) it is distributed group virtual-time round robin. A cgroup has the part of
//! the processors that its `cpu.weight` says, whatever the number of its tasks; inside it, tasks share that
//! by their nice values, and cgroups inside it by their weights. [`GroupScheduler::set_weight`] says
//! otherwise than `cpu.weight`. The policy's code is that of `crates/mete-policy/kernel`, which the tests
//! run, too (design decision D12); what it promises stands at `mete_policy::DistributedVtrr`.
//!
//! **Outside** ([`PolicyScheduler`]) it is any policy of the catalogue (design decision D13). What it costs
//! and what happens when it is late stands there.
//!
//! ```text
//!   start ──▶ (the kernel asks for every decision) ──▶ drop
//!    loaded, verified,     status()                  the kernel's own
//!    all tasks switched                             scheduler again
//! ```
//!
//! Principles:
//!
//! 1. **Nothing outlives the process.** The kernel takes all tasks back when the last descriptor is closed,
//!    also after `kill -9`; when a task has waited for thirty seconds; and when the policy breaks a rule of
//!    sched_ext. The status says why.
//! 2. **A decision inside the kernel takes one lock, that of the processor's own queues.** Only a processor
//!    that has nothing due locks another's, to take a task out of them. Two locks are never held at once. The
//!    other side's decisions take none.
//! 3. **Shares hold across all processors.** What a cgroup cannot use, because it has too few tasks or they
//!    are bound to few processors, the others divide by their shares.
//!
//! ```no_run
//! # fn main() -> Result<(), mete_ext::ExtError> {
//! let scheduler = mete_ext::GroupScheduler::start()?;
//! std::thread::sleep(std::time::Duration::from_secs(10));
//! println!("{} decisions", scheduler.status().decisions);
//! # Ok(()) }
//! ```

#![cfg(target_os = "linux")]

mod causes;
mod check;
mod empty;
mod ended;
mod error;
mod flags;
mod group;
mod outside;
mod scheduler;
mod skeleton;

pub use check::check_kernel_rules;
pub use empty::EmptyScheduler;
pub use ended::{Ended, Starved};
pub use error::ExtError;
pub use mete_kernel::Weight;
pub use outside::{Failure, PolicyScheduler, PolicyStatus, QUANTUM};
pub use scheduler::{GroupScheduler, QUANTA, Status, check_quantum, quantum_inside};
