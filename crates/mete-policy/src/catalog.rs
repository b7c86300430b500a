//! All dispatching policies by name.

use alloc::boxed::Box;

use crate::{Policy, RoundRobin, Setup, Share, Vtrr};

/// A policy that can be asked for by name.
#[derive(Clone, Copy)]
pub struct Entry {
    /// What `--policy` takes, and what [`Policy::name`] answers.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Makes one.
    pub make: fn(&Setup) -> Box<dyn Policy + Send>,
}

/// Every dispatching policy, in the order of the documentation.
pub const CATALOG: &[Entry] = &[
    Entry {
        name: "vtrr",
        about: "virtual-time round robin: shares exact in every cycle, in constant time",
        make: |setup| Box::new(Vtrr::new(setup)),
    },
    Entry {
        name: "vtrr-ranged",
        about: "vtrr, whose arrivals find their place by an array of all shares: the same schedule",
        make: |setup| Box::new(Vtrr::ranged(setup, Share::MAX)),
    },
    Entry {
        name: "rr",
        about: "round robin: everybody in turn, shares ignored",
        make: |setup| Box::new(RoundRobin::new(setup)),
    },
];

/// The policy of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Entry> {
    CATALOG.iter().find(|entry| entry.name == name)
}
