//! A dispatcher that needs no rights and nothing of the kernel but signals: a policy gives the processes of its user
//! the processor, and all others of theirs are paused (design decision D9).
//!
//! ```text
//!   processes ──(their clocks, whether they can run)──▶ manager ──▶ policy: who runs next, for how long
//!       ▲                                                  │
//!       └────────────── SIGSTOP, SIGCONT ──────────────────┘
//! ```
//!
//! The [policy](mete_policy::Policy) is any of the catalogue, the same that the simulator runs. It names a client, a
//! process, for each processor. Of those that can run, these go on and the others wait. The idea is that of ALPS
//! (Newhouse and Pasquale: ALPS: An Application-Level Proportional-Share Scheduler, HPDC 2006), which has shares of its
//! own in place of a policy.
//!
//! Principles:
//!
//! 1. **Everything is charged.** A client is charged for the time by its own clock, whether it was chosen or ran on its
//!    way to sleep. So it does not matter that looks come late, or that others have the processor.
//! 2. **Who sleeps is not paused.** It wakes and runs at once, and is paused at the next look if it is not its turn.
//!    So nothing is lost by a client that sleeps but what passes until the next look: an eighth of a quantum to a whole one, which it is where none has slept lately.
//! 3. **Nothing outlives the process.** Every process goes on at the end, within what
//!    [`ENFORCES`](mete_sched::actuator::pauses::ENFORCES) says.
//!
//! What it cannot do: keep others from the processor, as `mete-dispatch` can; and it has whole processes wait, not
//! threads. Jobs of a shell are left alone: it sees them stop, and the kernel hangs a group of them up that has lost what ties it to
//! the shell while one of them is stopped.
//!
//! ```no_run
//! use mete_pausing::{PausingDispatcher, Setup};
//! use mete_sched::domains::SharedDomain;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The first call in `main`: the dispatcher may have started this program to have all go on.
//! mete_sched::actuator::watcher::take_over_if_asked();
//! let domains = ["web=pid:12,share=3", "batch=pid:13"].map(|domain| SharedDomain::parse(domain.as_ref()));
//! let domains = domains.into_iter().collect::<Result<Vec<_>, _>>()?;
//! let policy = mete_policy::by_name("distributed-vtrr").unwrap();
//! let mut dispatcher = PausingDispatcher::start(policy, domains, Setup::default())?;
//! for _ in 0..100 {
//!     // Processes that have begun or ended are found here.
//!     dispatcher.look()?;
//!     std::thread::sleep(std::time::Duration::from_millis(50));
//! }
//! println!("{:?}", dispatcher.used());
//! # Ok(()) }
//! ```

#![cfg(target_os = "linux")]

mod client;
mod clock;
mod dispatcher;
mod error;
mod manager;
mod members;
#[cfg(test)]
mod model;
mod processes;
mod thread;

pub use dispatcher::{LeftOut, PausingDispatcher, Setup};
pub use error::PausingError;
pub use manager::Counts;
