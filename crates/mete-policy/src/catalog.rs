//! All dispatching policies by name.

use alloc::boxed::Box;

use crate::{
    Bvt, BvtSettings, Credit, CreditSettings, DeficitRoundRobin, DistributedVtrr, Eevdf, FairShare, Goodness,
    GroupRatio, GroupVtrr, KernelVtrr, Lottery, Policy, RoundRobin, Setup, Share, Stride, Vtrr,
    WeightedRoundRobin, Wf2q, Wfq, WfqLinear,
};

/// A policy that can be asked for by name.
#[derive(Clone, Copy)]
pub struct Entry {
    /// What `--policy` takes, and what [`Policy::name`] answers.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Whether a client runs for a quantum for each unit of its share at a time, and not for one quantum. Where an ordinary
    /// client has many units, the quantum has to be that much shorter.
    pub has_turns_by_share: bool,
    /// Whether a domain has its share however many clients are in it. Other policies give each client its domain's share.
    pub has_domains: bool,
    /// Makes the policy.
    pub make: fn(&Setup) -> Box<dyn Policy + Send>,
}

// Names are unique, so they tell policies apart.
impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.name == other.name
    }
}

impl Eq for Entry {}

impl core::fmt::Debug for Entry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Entry").field(&self.name).finish()
    }
}

macro_rules! catalog {
    ($($name:literal: $about:literal, $(turns by $units:ident,)? $(shares for $domains:ident,)? |$setup:ident| $make:expr;)*) => {
        /// Every dispatching policy, in the order of the documentation.
        pub const CATALOG: &[Entry] =
            &[$(Entry {
                name: $name,
                about: $about,
                has_turns_by_share: !stringify!($($units)?).is_empty(),
                has_domains: !stringify!($($domains)?).is_empty(),
                make: |$setup| Box::new($make),
            }),*];
    };
}

catalog! {
    "vtrr": "virtual-time round robin: shares exact in every cycle, in constant time",
        |setup| Vtrr::new(setup);
    "vtrr-ranged": "vtrr, whose arrivals find their place by an array of all shares: the same schedule",
        |setup| Vtrr::ranged(setup, Share::MAX);
    "group-vtrr": "a tree of vtrr queues: a domain's share does not grow with its number of clients",
        shares for domains, |setup| GroupVtrr::new(setup);
    "distributed-vtrr": "group vtrr with a queue for each processor: what `mete schedule --policy vtrr` runs in the kernel",
        shares for domains, |setup| DistributedVtrr::new(setup);
    "distributed-vtrr-kernel": "the same in C, as it runs inside the kernel: the same schedule",
        shares for domains, |setup| KernelVtrr::new(setup);
    "wrr": "weighted round robin: in turn, each for its share of quanta",
        turns by share, |setup| WeightedRoundRobin::new(setup);
    "drr": "deficit round robin: weighted round robin that carries over what a turn left or overran",
        turns by share, |setup| DeficitRoundRobin::new(setup);
    "wfq-linear": "weighted fair queueing, searched linearly: the smallest virtual finishing time",
        |setup| WfqLinear::new(setup);
    "wfq": "weighted fair queueing by a heap: the same schedule",
        |setup| Wfq::new(setup);
    "wf2q+": "WF2Q+: weighted fair queueing among clients that are not ahead",
        |setup| Wf2q::new(setup);
    "stride": "stride: the least pass, which goes on by the inverse of the share",
        |setup| Stride::new(setup);
    "lottery": "lottery: tickets by share, one drawn for each decision",
        |setup| Lottery::new(setup);
    "group-ratio": "group ratio round robin: clients of like shares in groups, groups by the ratio of their work",
        |setup| GroupRatio::new(setup);
    "bvt": "borrowed virtual time: the least virtual time, less a warp for clients that need low latency",
        |setup| Bvt::new(setup, BvtSettings::default());
    "eevdf": "earliest eligible virtual deadline first; lags are kept over blocking",
        |setup| Eevdf::new(setup);
    "goodness": "the scheduler of Linux 2.2: the highest sum of priority and ticks left",
        |setup| Goodness::new(setup);
    "rr": "round robin: every client in turn, shares ignored",
        |setup| RoundRobin::new(setup);
    "fair-share": "fair share: users by share, whatever their number of processes, over decaying priorities",
        shares for domains, |setup| FairShare::new(setup);
    "credit": "Xen's credit scheduler: credit by weight, boost at wake-up, slices of 30 ms",
        shares for domains, |setup| Credit::new(setup, CreditSettings::XEN);
    "credit-tavs": "the credit scheduler with all of TAVS: knows I/O-bound tasks and driver domains",
        shares for domains, |setup| Credit::new(setup, CreditSettings::TAVS);
}

/// The policy of that name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    CATALOG.iter().find(|entry| entry.name == name)
}
