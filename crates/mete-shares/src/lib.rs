//! Shares of processor time for control groups, by whatever this kernel offers.
//!
//! A [`Dealer`] gives groups their shares and says by what it does, and how closely that can keep them:
//!
//! | by | acts | keeps shares |
//! |---|---|---|
//! | sched_ext | group VTRR inside the kernel chooses every task ([`mete_ext`]) | on all processors, within some quanta of 1 ms |
//! | weights | the kernel's own scheduler, told by weights of the groups ([`mete_sched::actuator::Weights`]) | within some tenths of a point over seconds, on few processors |
//!
//! With [`By::Auto`], the first one that this kernel has is taken. What was changed is put back when the dealer goes, also
//! after `kill -9`.
//!
//! ```no_run
//! use mete_shares::{By, Dealer, Group, Share};
//!
//! # fn main() -> Result<(), mete_shares::DealError> {
//! // The first call in `main`: the dealer may have started this program to put weights back.
//! mete_sched::actuator::watcher::take_over_if_asked();
//! let web = Group { name: "web".into(), path: "/sys/fs/cgroup/web".into(), share: Share::new(300).unwrap() };
//! let dealer = Dealer::start(By::Auto, vec![web])?;
//! println!("{dealer}");
//! std::thread::sleep(std::time::Duration::from_secs(10));
//! println!("{:?}", dealer.given());
//! # Ok(()) }
//! ```

#![cfg(target_os = "linux")]

mod account;
mod dealer;
mod given;

pub use dealer::{By, DealError, Dealer};
pub use given::{Did, Given};
pub use mete_ext::{Ended, Share};

use std::path::PathBuf;

/// A control group, and the share that it is to have beside the other groups with the same parent.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it is called in reports.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
    /// Its share; 100 is what a group has that nothing is said about.
    pub share: Share,
}
