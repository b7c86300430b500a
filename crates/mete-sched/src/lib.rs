//! The user-level scheduler: from logs to analysis, policy and actuator (LOG-16).
//!
//! The facility below it logs; this crate configures what is logged, reads it in place, finds out
//! what a policy wants to know, asks the policy, and acts. It holds no policy of its own: those are
//! `mete-policy`'s.
//!
//! ```text
//!   sources        kernel, user-level components, regions: what is logged, and by whom
//!   domains        names, selectors, who belongs to which domain now
//!   configure      which log files there are
//!      │
//!      ▼
//!   analysis ──▶ mete_policy::Affinity ──▶ actuator
//!   every 20 ms    every 100 ms              sched_setaffinity, undone by the watcher
//! ```
//!
//! Principles:
//!
//! 1. **Polling is cheap enough to leave on.** A poll looks at one index for each log file, reads
//!    what is new in place, and allocates nothing.
//! 2. **Loss is said.** Every [`Report`] carries its [completeness](analysis::Completeness).
//! 3. **Whatever is changed is put back**, however the scheduler ends ([`actuator`]).
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//!
//! use mete_sched::{Report, Scheduler, Settings, actuator::watcher};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // First of all in `main`: this program may have been started to put masks back.
//! watcher::take_over_if_asked();
//! let domains = ["web=comm:nginx", "db=user:postgres"].map(str::parse).into_iter().collect::<Result<_, _>>()?;
//! let settings = Settings { policy: Some(mete_policy::affinity::Settings::default()), ..Settings::default() };
//! let mut scheduler = Scheduler::start(settings, domains)?;
//! let stop = AtomicBool::new(false); // set by a signal handler
//! scheduler.run(&stop, |scheduler| {
//!     for notice in scheduler.notices() {
//!         println!("{notice:?}");
//!     }
//! });
//! println!("{:?}", Report::of(&scheduler));
//! scheduler.finish();
//! # Ok(()) }
//! ```
//!
//! "The thesis" and "the short paper" are the work on event logging for resource scheduling that
//! the facility implements; sections are cited where something is implemented.

#![cfg(target_os = "linux")]

pub mod actuator;
pub mod analysis;
pub mod busiest;
pub mod configure;
pub mod domains;
pub mod interval;
pub mod other_programs;
pub mod precedence;
pub mod report;
pub mod scheduler;
pub mod sources;
pub mod ticker;

pub use configure::Layout;
pub use domains::{DivideBy, DomainSpec, Domains, Selector};
pub use report::{Dealing, DomainReport, EventReport, Phase, ProcessorReport, Report};
pub use scheduler::{Cost, Ended, Notice, Scheduler, SchedulerError, Settings};
pub use ticker::Ticker;
