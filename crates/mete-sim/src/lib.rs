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
//! # A policy of your own
//!
//! A policy that you wrote runs like those of the catalog. [`report::run_under`] runs it in a scenario, made
//! for the scenario by [`Scenario::setup`]; [`report::run`] runs one of the catalog *beside* it, in the same
//! scenario from the same seed, so that the reports differ by the policies alone. [`quanta::run`] compares
//! policies more strictly: all clients are always ready, on one processor, and every error is exact. `Beside`
//! in `mete-bench` makes a table and a picture of that.
//!
//! ```
//! use std::collections::VecDeque;
//!
//! use mete_policy::{
//!     ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop, Vtrr,
//! };
//! use mete_sim::quanta::{self, Shares};
//! use mete_sim::{Scenario, report};
//!
//! /// Every client in turn, whatever its share.
//! struct InTurn {
//!     ready: VecDeque<ClientId>,
//!     quantum_ns: Nanoseconds,
//! }
//!
//! impl InTurn {
//!     fn new(setup: &Setup) -> InTurn {
//!         let ready = VecDeque::with_capacity(setup.clients as usize);
//!         InTurn { ready, quantum_ns: setup.quantum_ns }
//!     }
//! }
//!
//! impl Policy for InTurn {
//!     fn name(&self) -> &'static str {
//!         "in-turn"
//!     }
//!     fn add(&mut self, _client: ClientId, _domain: DomainIndex, _share: Share, _now: Nanoseconds) {}
//!     fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
//!         self.ready.retain(|&ready| ready != client);
//!     }
//!     fn set_share(&mut self, _client: ClientId, _share: Share, _now: Nanoseconds) {}
//!     fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
//!         self.ready.push_back(client);
//!         None
//!     }
//!     fn pick(&mut self, _processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
//!         let client = self.ready.pop_front()?;
//!         Some(Decision { client, slice_ns: self.quantum_ns, grant: Grant::Share })
//!     }
//!     fn ran(&mut self, client: ClientId, _ran: Nanoseconds, stop: Stop, _now: Nanoseconds) {
//!         if stop != Stop::Blocked {
//!             self.ready.push_back(client);
//!         }
//!     }
//! }
//!
//! // Clients with shares of 3, 2 and 1, under this policy and under VTRR beside it.
//! let scenario = Scenario::load("shares-3-2-1", &[])?;
//! let in_turn = InTurn::new(&scenario.setup(scenario.seed));
//! let (own, ()) = report::run_under(&scenario, in_turn, scenario.seed, ())?;
//! let (vtrr, ()) = report::run(&scenario, "vtrr", scenario.seed, ()).expect("it is in the catalog")?;
//! assert!(own.clients.iter().all(|client| (client.got - 1.0 / 3.0).abs() < 0.01));
//! assert_eq!(vtrr.clients[0].got, 0.5);
//!
//! // The same quantum by quantum: how far behind its share a client falls at worst, in quanta.
//! let shares = Shares::new([3, 2, 1].into_iter().filter_map(Share::new).collect())?;
//! let setup = shares.setup(1);
//! let own = quanta::run(&mut InTurn::new(&setup), &shares, 2)?;
//! let vtrr = quanta::run(&mut Vtrr::new(&setup), &shares, 2)?;
//! assert!(own.errors.lowest_tu() < vtrr.errors.lowest_tu());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`host`] is the machine, [`model`] its interface to what runs on it, [`recorder`] its interface to what
//! watches.

mod client_report;
pub mod cost;
pub mod figure;
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
pub use scenario::{Scenario, ScenarioError, Setting};
pub use scene::Scene;
pub use sweep::{Sweep, SweepError, Varied};
