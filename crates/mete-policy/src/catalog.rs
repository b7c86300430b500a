//! All dispatching policies by name.

use alloc::boxed::Box;

use crate::{
    Bvt, BvtSettings, Credit, CreditSettings, DeficitRoundRobin, Eevdf, FairShare, Goodness, GroupRatio,
    GroupVtrr, Lottery, Policy, RoundRobin, Setup, Share, Stride, Vtrr, WeightedRoundRobin, Wf2q, Wfq,
    WfqLinear,
};

/// A policy that can be asked for by name.
#[derive(Clone, Copy)]
pub struct Entry {
    /// What `--policy` takes, and what [`Policy::name`] answers.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Makes the policy.
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
        name: "group-vtrr",
        about: "a tree of vtrr queues: a domain's share does not grow with its number of clients",
        make: |setup| Box::new(GroupVtrr::new(setup)),
    },
    Entry {
        name: "wrr",
        about: "weighted round robin: in turn, each for its share of quanta",
        make: |setup| Box::new(WeightedRoundRobin::new(setup)),
    },
    Entry {
        name: "drr",
        about: "deficit round robin: weighted round robin that carries over what a turn left or overran",
        make: |setup| Box::new(DeficitRoundRobin::new(setup)),
    },
    Entry {
        name: "wfq-linear",
        about: "weighted fair queueing, searched linearly: the smallest virtual finishing time",
        make: |setup| Box::new(WfqLinear::new(setup)),
    },
    Entry {
        name: "wfq",
        about: "weighted fair queueing by a heap: the same schedule",
        make: |setup| Box::new(Wfq::new(setup)),
    },
    Entry {
        name: "wf2q+",
        about: "WF2Q+: weighted fair queueing among clients that are not ahead",
        make: |setup| Box::new(Wf2q::new(setup)),
    },
    Entry {
        name: "stride",
        about: "stride: the least pass, which goes on by the inverse of the share",
        make: |setup| Box::new(Stride::new(setup)),
    },
    Entry {
        name: "lottery",
        about: "lottery: tickets by share, one drawn for each decision",
        make: |setup| Box::new(Lottery::new(setup)),
    },
    Entry {
        name: "group-ratio",
        about: "group ratio round robin: clients of like shares in groups, groups by the ratio of their work",
        make: |setup| Box::new(GroupRatio::new(setup)),
    },
    Entry {
        name: "bvt",
        about: "borrowed virtual time: the least virtual time, less a warp for clients that need low latency",
        make: |setup| Box::new(Bvt::new(setup, BvtSettings::default())),
    },
    Entry {
        name: "eevdf",
        about: "earliest eligible virtual deadline first; lags are kept over blocking",
        make: |setup| Box::new(Eevdf::new(setup)),
    },
    Entry {
        name: "goodness",
        about: "the scheduler of Linux 2.2: the highest sum of priority and ticks left",
        make: |setup| Box::new(Goodness::new(setup)),
    },
    Entry {
        name: "rr",
        about: "round robin: every client in turn, shares ignored",
        make: |setup| Box::new(RoundRobin::new(setup)),
    },
    Entry {
        name: "fair-share",
        about: "fair share: users by share, whatever their number of processes, over decaying priorities",
        make: |setup| Box::new(FairShare::new(setup)),
    },
    Entry {
        name: "credit",
        about: "Xen's credit scheduler: credit by weight, boost at wake-up, slices of 30 ms",
        make: |setup| Box::new(Credit::new(setup, CreditSettings::XEN)),
    },
    Entry {
        name: "credit-tavs",
        about: "the credit scheduler with all of TAVS: knows I/O-bound tasks and driver domains",
        make: |setup| Box::new(Credit::new(setup, CreditSettings::TAVS)),
    },
];

/// The policy of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Entry> {
    CATALOG.iter().find(|entry| entry.name == name)
}
