//! The dispatcher: a policy outside the kernel gives threads the processor, on Linux from 5.18 on with type
//! information and eBPF (design decision D9).
//!
//! ```text
//!   threads ──(switches, wake-ups: rows, mapped memory)──▶ manager ──▶ policy: who runs next, for how long
//!      ▲                                                      │
//!      └────────── scheduling classes: in front, behind ──────┘
//! ```
//!
//! The [policy](mete_policy::Policy) is any of the catalogue, the same that the simulator runs. It names a
//! client for each processor. That thread is put in front of all ordinary ones (`SCHED_FIFO`), and all other
//! clients behind them (`SCHED_IDLE`). So a decision costs system calls, where `mete-ext` costs some
//! thousand instructions; it needs no sched_ext.
//!
//! Principles:
//!
//! 1. **Everything is charged.** A client is charged for the time that it had, by the kernel's own switches,
//!    whether it was chosen or ran on what others left. What a client starts is a client, too, as a rule
//!    within a millisecond.
//! 2. **The rest of the machine has its share.** A chosen client steps back when a task waits that is no
//!    client, as long as those have not had their share (see [`Setup::rest`]).
//! 3. **Nothing outlives the process.** Every thread's class is put back, however the dispatcher ends, within
//!    what [`ENFORCES`](mete_sched::actuator::classes::ENFORCES) says. If its thread runs without a pause for
//!    a fifth of a second, the kernel ends it.
//!
//! ```no_run
//! use mete_dispatch::{Dispatcher, Setup};
//! use mete_sched::domains::SharedDomain;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The first call in `main`: the dispatcher may have started this program to put classes back.
//! mete_sched::actuator::watcher::take_over_if_asked();
//! let domains = ["web=pid:12,share=3", "batch=pid:13"].map(|domain| SharedDomain::parse(domain.as_ref()));
//! let domains = domains.into_iter().collect::<Result<Vec<_>, _>>()?;
//! let policy = mete_policy::by_name("distributed-vtrr").unwrap();
//! let mut dispatcher = Dispatcher::start(policy, domains, Setup::default())?;
//! for _ in 0..100 {
//!     // Threads that have begun or ended are found here.
//!     dispatcher.look()?;
//!     std::thread::sleep(std::time::Duration::from_millis(50));
//! }
//! println!("{:?}", dispatcher.used());
//! # Ok(()) }
//! ```

#![cfg(target_os = "linux")]

mod bandwidth;
mod bell;
mod births;
mod channels;
mod clients;
mod counts;
mod dispatcher;
mod dues;
mod error;
mod foremost;
mod mailbox;
mod manager;
mod members;
mod memory;
mod message;
mod midwife;
#[cfg(test)]
mod model;
mod register;
mod skeleton;
mod slot;
mod step_back;
mod thread;
mod threads;

pub use counts::Counts;
pub use dispatcher::{Dispatcher, Setup};
pub use error::DispatchError;
