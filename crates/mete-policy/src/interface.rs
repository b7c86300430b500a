//! What a dispatching policy is asked and told: the [`Policy`] trait and the values in its calls.

use alloc::boxed::Box;
use core::num::NonZeroU32;

use crate::observation::Observation;
use crate::{DomainIndex, ProcessorId};

/// A client's number, dense from 0: the entity that is scheduled (a task, a virtual processor).
pub type ClientId = u32;

/// Time in nanoseconds, since some origin of the owner's, or a length of it.
pub type Nanoseconds = u64;

/// A client's or domain's share: its weight relative to the others that compete with it.
///
/// Never zero, so that no policy need say what a share of nothing is, and at most [`Share::MAX`], so
/// that sums and products of shares fit the integers that the policies' bounds are exact in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(NonZeroU32);

impl Share {
    /// One: what an unweighted client has.
    pub const ONE: Share = Share(NonZeroU32::MIN);
    /// The largest share, 2²⁰.
    pub const MAX: Share = Share(NonZeroU32::new(1 << 20).expect("2^20 is not zero"));

    /// A share of `weight`; `None` for zero and for more than [`Share::MAX`].
    #[must_use]
    pub const fn new(weight: u32) -> Option<Share> {
        match NonZeroU32::new(weight) {
            Some(inner) if weight <= Share::MAX.get() => Some(Share(inner)),
            _ => None,
        }
    }

    /// The share as a number, 1 to 2²⁰.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// What a policy is made for. Nothing grows later: calls with numbers beyond these are read as
/// "nothing happened".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// How many clients there may be at a time; their numbers are below this.
    pub clients: u32,
    /// How many domains there may be, the root (domain 0) included; at least 1.
    pub domains: DomainIndex,
    /// How many processors there are; at least 1.
    pub processors: ProcessorId,
    /// The slice that a client is given, the papers' time unit, in nanoseconds; at least 1.
    pub quantum_ns: Nanoseconds,
    /// Where randomised policies start; the same seed and calls give the same answers.
    pub seed: u64,
}

impl Setup {
    /// One processor, one domain, quanta of 10 ms (VTRR paper, §4).
    #[must_use]
    pub const fn for_clients(clients: u32) -> Setup {
        Setup { clients, domains: 1, processors: 1, quantum_ns: 10_000_000, seed: 0 }
    }
}

/// Why a client was chosen. Owners log it; policies that boost nobody always say [`Grant::Share`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// It is its turn.
    #[default]
    Share,
    /// It was boosted because it woke with something left (credit scheduler, TAVS paper §2.2).
    WakeBoost,
    /// It was boosted for an event that is aimed at an I/O-bound task in it (TAVS paper §3.4).
    PartialBoost,
}

/// A proposal: let this client run next, for at most this long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Who runs next. The policy counts it as running from now on.
    pub client: ClientId,
    /// For how long at most, in nanoseconds.
    pub slice_ns: Nanoseconds,
    /// Why.
    pub grant: Grant,
}

/// Why a client left its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its slice was used up; it goes on being runnable.
    Expired,
    /// It had to give way, or the decision could not be carried out; it goes on being runnable.
    Preempted,
    /// It gave way by itself (`sched_yield`); it goes on being runnable.
    Yielded,
    /// It waits for something, or has ended. The next word about it is a wake-up or its removal.
    Blocked,
}

/// A dispatching policy: told what happens to clients, it answers who runs next and for how long.
///
/// # The life of a client
///
/// ```text
///            add            wake             pick
///   absent ──────▶ blocked ──────▶ ready ───────────▶ running
///      ▲              ▲  ▲            ▲  Expired,        │
///      │    remove    │  │            │  Preempted,      │ ran
///      └──────────────┘  │            └──Yielded─────────┤
///                        └─────────────Blocked───────────┘
/// ```
///
/// `remove` takes a client out of any state. A call that does not fit a client's state (waking one
/// that is ready, a number out of range, a removal of nobody) changes nothing.
///
/// # What an owner may rely on, and what it may not
///
/// * [`pick`](Policy::pick) answers a client that is ready, and answers one whenever one is ready that
///   may run on that processor.
/// * `pick` may be called ahead: once before the running client's [`ran`](Policy::ran) is known. A live
///   owner hears of the end of a slice after it has had to have the next decision at hand.
/// * A decision that cannot be carried out is given back by `ran(client, 0, Stop::Preempted, now)`.
/// * Times of events need not come in order: an owner that hears of several processors in batches
///   passes each event's own time. A policy must not read a difference of two times as positive
///   without saturating.
/// * Of one instant, an owner that can tells of ticks first, of wake-ups next, of who stopped then, and picks
///   last. One that picks before a wake-up of the same time loses nothing by it but the order: virtual time
///   goes on while a quantum is used, not when it is given.
/// * No call allocates, blocks, or takes longer than the policy's documentation says.
pub trait Policy {
    /// The policy's short name: what `--policy` takes.
    fn name(&self) -> &'static str;

    /// Makes a domain known: a group of clients, inside `parent` (0 is the root), with its own share of
    /// what the parent has. Policies without groups give each client its own share and ignore this.
    fn add_domain(&mut self, domain: DomainIndex, parent: DomainIndex, share: Share) {
        let _ = (domain, parent, share);
    }

    /// Changes a domain's share.
    fn set_domain_share(&mut self, domain: DomainIndex, share: Share, now: Nanoseconds) {
        let _ = (domain, share, now);
    }

    /// Makes a client known. It is blocked until it wakes.
    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, now: Nanoseconds);

    /// Forgets a client, whatever it was doing. Its number may be used again.
    fn remove(&mut self, client: ClientId, now: Nanoseconds);

    /// Changes a client's share, whatever it is doing.
    fn set_share(&mut self, client: ClientId, share: Share, now: Nanoseconds);

    /// A client became runnable. `Some(processor)`: whoever runs there should give way at once; the
    /// owner stops it, says so by [`ran`](Policy::ran) with [`Stop::Preempted`], and picks anew. Until
    /// then the processor is promised: another client that wakes gets the same answer only if it is better
    /// than the one that it was promised to. An
    /// owner with an idle processor picks for that one in any case.
    #[must_use = "the policy may want a processor to be taken from its client"]
    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId>;

    /// Who runs next on this processor; `None` when nobody is ready, or there is no such processor.
    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision>;

    /// A running client left its processor after `ran_ns` of processor time.
    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds);

    /// How often [`tick`](Policy::tick) wants to be called for each processor; `None` for policies that
    /// go by slices alone.
    fn tick_ns(&self) -> Option<Nanoseconds> {
        None
    }

    /// The periodic interrupt on one processor. `true`: whoever runs there should give way.
    #[must_use = "the policy may want the processor to be taken from its client"]
    fn tick(&mut self, processor: ProcessorId, now: Nanoseconds) -> bool {
        let _ = (processor, now);
        false
    }

    /// Something was seen from outside the clients that task-aware policies go by (TAVS paper, §3, §4).
    /// The answer is [`wake`](Policy::wake)'s.
    #[must_use = "the policy may want a processor to be taken from its client"]
    fn observe(&mut self, observation: Observation, now: Nanoseconds) -> Option<ProcessorId> {
        let _ = (observation, now);
        None
    }

    /// The policy's own counters, each with its name, for tables and tests.
    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let _ = each;
    }
}

/// A policy chosen at run time.
impl<P: Policy + ?Sized> Policy for Box<P> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn add_domain(&mut self, domain: DomainIndex, parent: DomainIndex, share: Share) {
        (**self).add_domain(domain, parent, share);
    }

    fn set_domain_share(&mut self, domain: DomainIndex, share: Share, now: Nanoseconds) {
        (**self).set_domain_share(domain, share, now);
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, now: Nanoseconds) {
        (**self).add(client, domain, share, now);
    }

    fn remove(&mut self, client: ClientId, now: Nanoseconds) {
        (**self).remove(client, now);
    }

    fn set_share(&mut self, client: ClientId, share: Share, now: Nanoseconds) {
        (**self).set_share(client, share, now);
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        (**self).wake(client, now)
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        (**self).pick(processor, now)
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        (**self).ran(client, ran_ns, stop, now);
    }

    fn tick_ns(&self) -> Option<Nanoseconds> {
        (**self).tick_ns()
    }

    fn tick(&mut self, processor: ProcessorId, now: Nanoseconds) -> bool {
        (**self).tick(processor, now)
    }

    fn observe(&mut self, observation: Observation, now: Nanoseconds) -> Option<ProcessorId> {
        (**self).observe(observation, now)
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        (**self).counters(each);
    }
}
