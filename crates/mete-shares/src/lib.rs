//! Shares of processor time for domains, by the means that this kernel offers.
//!
//! A [`Dealer`] gives domains their shares and says which means it uses, and how closely that can keep them:
//!
//! | by | gives | acts | keeps shares |
//! |---|---|---|---|
//! | sched_ext | control groups | group VTRR inside the kernel chooses every task ([`mete_ext`]) | on all processors, within some quanta of 1 ms, or of the kernel's tick if that is longer |
//! | sched_ext, another policy | control groups | any policy of the catalogue, outside the kernel, chooses every task ([`mete_ext::PolicyScheduler`]) | as the policy does, in quanta of 4 ms |
//! | weights | control groups | the kernel's own scheduler, told by weights ([`mete_sched::actuator::Weights`]) | within some tenths of a point over seconds on one processor, some points on several |
//! | the dispatcher | any processes | VTRR, or another policy, outside the kernel puts threads in front of all others ([`mete_dispatch`]) | within some quanta of 4 ms |
//!
//! With [`By::Auto`], the first one is taken that this kernel has and that can serve these domains. What was
//! changed is put back when the dealer goes, also after `kill -9`.
//!
//! Where the kernel ends a scheduler of sched_ext for a fault, or its policy hangs and there was none before it, the
//! kernel's own scheduler deals by weights, and the other is tried again after pauses that grow ([`Dealer::look`]).
//!
//! ```no_run
//! use mete_shares::{By, Dealer, SharePolicy, SharedDomain};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The first call in `main`: the dealer may have started this program to put things back.
//! mete_sched::actuator::watcher::take_over_if_asked();
//! let web = SharedDomain::parse("web=cgroup:/web,share=3".as_ref())?;
//! let mut dealer = Dealer::start(By::Auto, SharePolicy::GroupVtrr, vec![web])?;
//! println!("{dealer}");
//! for _ in 0..200 {
//!     dealer.look()?;
//!     std::thread::sleep(std::time::Duration::from_millis(50));
//! }
//! println!("{:?}", dealer.given());
//! # Ok(()) }
//! ```

#![cfg(target_os = "linux")]

mod account;
mod by;
pub mod config;
mod dealer;
mod error;
mod fallback;
mod given;
mod group;
mod in_turn;
mod means;
pub mod parameters;
mod policy;
mod remade;
mod retry;
mod rules;

pub use by::By;
pub use config::{Config, ConfigError};
pub use dealer::Dealer;
pub use error::DealError;
pub use given::{Did, Given};
pub use group::control_group;
pub use means::PutBack;
pub use mete_ext::{Ended, Weight};
pub use mete_sched::domains::SharedDomain;
pub use policy::SharePolicy;
pub use rules::check;
