//! A machine on which scheduling policies are tried, and what is measured there.
//!
//! ```text
//!   scenario ──▶ Host ◀──▶ policy (mete-policy, the code that runs live)
//!                 │  ▲
//!       next, advance, deliver
//!                 ▼  │
//!               Model: tasks, guest kernels, devices ──▶ Recorder: metrics, traces
//! ```
//!
//! 1. **One seed, one run.** Time is in integer nanoseconds, the events of one instant have one order, and
//!    each entity draws random numbers from a stream of its own. Nothing depends on the machine or on
//!    threads.
//! 2. **The policy is the live one.** The host reports what happened and carries out the policy's answers.
//! 3. **Time adds up.** The times that processors ran, switched and idled add up to their number times the
//!    duration.
//!
//! ```
//! use mete_sim::{Scenario, report};
//!
//! let scenario = Scenario::load("shares-3-2-1", &[])?;
//! let (report, ()) = report::run(&scenario, "vtrr", 1, ()).expect("it is in the catalog")?;
//! assert_eq!(report.clients[0].got, 0.5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`host`] is the machine, [`model`] its interface to what runs on it, [`recorder`] its interface to what
//! watches.

mod client_report;
pub mod cost;
pub mod host;
pub mod metrics;
pub mod model;
mod parallel;
pub mod quanta;
mod queue;
pub mod random;
pub mod recorder;
pub mod replay;
pub mod report;
pub mod scenario;
pub mod scene;
pub mod sweep;
pub mod trace;
pub mod waiting;
mod watch;

pub use host::{Hardware, Host, Payer, Stalled, Times};
pub use model::{Context, Model, Reaction, Step};
pub use parallel::{all_processors, in_parallel};
pub use queue::Ticket;
pub use recorder::{Note, Recorder};
pub use report::{ClientReport, NetworkReport, Report};
pub use scenario::{Scenario, ScenarioError};
pub use scene::Scene;
pub use sweep::{Sweep, SweepError, Varied};
