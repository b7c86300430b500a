//! The user-level scheduler: from logs to analysis, policy and actuator (LOG-16).
//!
//! The facility below this crate logs. This crate configures what is logged, reads the logs in place, derives
//! from them what a policy needs, asks the policy, and acts. It holds no policy: all policies live in
//! `mete-policy`.
//!
//! ```text
//!   sources        kernel, user-level components, regions: what each of them logs
//!   domains        names and selectors; which process belongs to which domain now
//!   configure      which log files each source gets
//!      │
//!      ▼
//!   analysis ──▶ mete_policy::Affinity ──▶ actuator
//!   every 20 ms    every 100 ms              sched_setaffinity, undone by the watcher
//! ```
//!
//! Principles:
//!
//! 1. **Polling is cheap enough to leave on.** A poll looks at one index for each log file, reads what is new
//!    in place, and allocates nothing.
//! 2. **Loss is reported.** Every [`Report`] carries a statement of its
//!    [completeness](analysis::Completeness).
//! 3. **Every change is undone**, however the scheduler ends ([`actuator`]).
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//!
//! use mete_sched::{Report, Scheduler, Settings, actuator::watcher};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The first call in `main`: the scheduler may have started this program as a watcher, to put masks back.
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
//! "The thesis" and "the short paper" are the work on event logging for resource scheduling that the facility
//! implements. Code that implements a part of them cites the section.

#![cfg(target_os = "linux")]

pub mod actuator;
pub mod analysis;
pub mod busiest;
pub mod configure;
pub mod domains;
pub mod interval;
mod missed_activity;
pub mod notice;
pub mod other_programs;
pub mod precedence;
pub mod recovery;
pub mod report;
pub mod scheduler;
pub mod sources;
mod ticker;

pub use configure::Layout;
pub use domains::{BuiltIn, DivideBy, DomainSpec, Domains, Selector};
pub use notice::Notice;
pub use report::{Dealing, DomainReport, EventKind, EventReport, Phase, ProcessorReport, Report};
pub use scheduler::{Ended, Scheduler, SchedulerCost, SchedulerError, Settings};
