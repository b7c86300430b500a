//! The interface of dispatching policies: the [`Policy`] trait and the values in its calls.

use alloc::boxed::Box;
use core::num::NonZeroU32;

use crate::observation::{Causes, Observation};
use crate::{ClientId, DomainIndex, Nanoseconds, ProcessorId};

/// A client's or domain's share: its weight relative to the others that compete with it.
///
/// A share is never zero, so no policy has to say what a share of zero means. It is at most [`Share::MAX`],
/// so that sums and products of shares fit the integers in which the policies' bounds are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(NonZeroU32);

impl Share {
    /// One: the share of an unweighted client.
    pub const ONE: Share = Share(NonZeroU32::MIN);
    /// The largest share, 2²⁰.
    pub const MAX: Share = Share(NonZeroU32::new(1 << 20).expect("2^20 is not zero"));

    /// A share of `weight`; `None` for zero and for more than [`Share::MAX`].
    pub const fn new(weight: u32) -> Option<Share> {
        match NonZeroU32::new(weight) {
            Some(inner) if weight <= Share::MAX.get() => Some(Share(inner)),
            _ => None,
        }
    }

    /// The share as a number, 1 to 2²⁰.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// The dimensions that a policy is made for. Nothing grows later: calls with numbers beyond these are read as
/// "nothing happened".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The largest number of clients at a time; client numbers are below this.
    pub clients: u32,
    /// The number of domains, the root (domain 0) included; at least 1.
    pub domains: u16,
    /// The number of processors; at least 1.
    pub processors: u16,
    /// The slice that a client is given, in nanoseconds: the papers' time unit; at least 1.
    pub quantum_ns: Nanoseconds,
    /// The seed of randomised policies; the same seed and calls give the same answers.
    pub seed: u64,
}

impl Setup {
    /// One processor, one domain, quanta of 10 ms (VTRR paper, §4).
    pub const fn for_clients(clients: u32) -> Setup {
        Setup { clients, domains: 1, processors: 1, quantum_ns: Nanoseconds::from_millis(10), seed: 0 }
    }
}

/// Why a client was chosen. Owners log it; policies without boosts always say [`Grant::Share`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// It is the client's turn.
    #[default]
    Share,
    /// The client was boosted because it woke with credit left (credit scheduler, TAVS paper §2.2).
    WakeBoost,
    /// The client was boosted for an event that is aimed at an I/O-bound task in it (TAVS paper §3.4).
    PartialBoost,
}

/// A proposal: let this client run next, for at most this long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The client that runs next. The policy counts it as running from now on.
    pub client: ClientId,
    /// The longest time that it may run, in nanoseconds.
    pub slice_ns: Nanoseconds,
    /// Why it was chosen.
    pub grant: Grant,
}

impl Decision {
    /// It is the client's turn.
    pub(crate) const fn by_share(client: ClientId, slice_ns: Nanoseconds) -> Decision {
        Decision { client, slice_ns, grant: Grant::Share }
    }
}

/// Why a client left its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It used its slice up, and stays runnable.
    Expired,
    /// It had to give way, or the decision could not be carried out; it stays runnable.
    Preempted,
    /// It gave way by itself (`sched_yield`), and stays runnable.
    Yielded,
    /// It waits for something, or has ended. The next call about it is a wake-up or its removal.
    Blocked,
}

/// A dispatching policy: its owner tells it what happens to clients; it answers which client runs next, and
/// for how long.
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
/// `remove` takes a client out of any state. A call that does not fit a client's state changes nothing:
/// waking a client that is ready, a number out of range, the removal of an absent client.
///
/// # What an owner may rely on, and what it may not
///
/// * [`pick`](Policy::pick) answers a client that is ready. If a client is ready that may run on that
///   processor, `pick` answers one.
/// * `pick` may be called ahead: once before the running client's [`ran`](Policy::ran) is known. A live
///   owner learns of the end of a slice only after it has needed the next decision.
/// * A decision that cannot be carried out is given back by `ran(client, 0, Stop::Preempted, now)`.
/// * Times of events need not come in order: an owner that learns of several processors in batches
///   passes each event's own time. A policy must not read a difference of two times as positive
///   without saturating.
/// * If an owner can choose the order of events of one instant, it reports ticks first, then wake-ups, then
///   stops, and picks last. An owner that picks before a wake-up of the same time changes nothing but the
///   order: virtual time goes on while a quantum is used, not when it is given.
/// * No call allocates, blocks, or takes longer than the policy's documentation says.
pub trait Policy {
    /// The policy's short name: the argument of `--policy`.
    fn name(&self) -> &'static str;

    /// Makes a domain known: a group of clients inside `parent` (0 is the root), with its own share of
    /// what the parent has. Policies without groups give each client its own share and ignore this.
    fn add_domain(&mut self, domain: DomainIndex, parent: DomainIndex, share: Share) {
        let _ = (domain, parent, share);
    }

    /// Forgets a domain. Its number may be used again, also inside another one. One that has members which are ready
    /// or run, or other domains, stays as it is.
    fn remove_domain(&mut self, domain: DomainIndex) {
        let _ = domain;
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

    /// Says which of the first 64 processors a client may run on, a bit each; on all, if nothing is said. One
    /// that waits at another processor stays there, until its owner has it block and wake. Policies that know
    /// no bounds ignore it.
    fn set_allowed(&mut self, client: ClientId, processors: u64) {
        let _ = (client, processors);
    }

    /// Whether [`set_allowed`](Policy::set_allowed) bounds what is [picked](Policy::pick) for a processor. The owner of a policy
    /// that knows no bounds sees to them.
    fn knows_bounds(&self) -> bool {
        false
    }

    /// A client became runnable. `Some(processor)`: the client that runs there should give way at once. The
    /// owner stops it, reports that by [`ran`](Policy::ran) with [`Stop::Preempted`], and picks anew. Until
    /// then the processor is promised: another client that wakes gets the same answer only if it is better
    /// than the client to which the processor was promised. An owner with an idle processor picks for that
    /// processor in any case.
    #[must_use = "the policy may want a processor to be taken from its client"]
    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId>;

    /// The client that runs next on this processor; `None` if no client is ready or the processor does not
    /// exist.
    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision>;

    /// A running client left its processor after `ran_ns` of processor time.
    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds);

    /// Whether the client that runs on a processor keeps it until its slice is over: no client that wakes and
    /// nothing that is observed takes it away, so the owner need not ask the policy at once. `false`: it may have
    /// to give way.
    fn keeps(&self, processor: ProcessorId) -> bool {
        let _ = processor;
        false
    }

    /// By what a blocked client would have to be woken now to take the processor that it had last from a client that does not
    /// [keep](Policy::keeps) it, and to keep it itself then. It may be told so ahead, while the client is blocked: an owner
    /// can let the client run at once when it wakes, and tell the policy afterwards of the wake-up, of the client that gave
    /// way, and of its having [picked](Policy::pick) what runs. If the policy picks another one then, because things have
    /// changed, the owner gives that one back.
    fn goes_ahead(&self, client: ClientId) -> Causes {
        let _ = client;
        Causes::NONE
    }

    /// The period in which [`tick`](Policy::tick) is to be called for each processor; `None` for policies
    /// that need slices alone.
    fn tick_ns(&self) -> Option<Nanoseconds> {
        None
    }

    /// The periodic interrupt on one processor. `true`: the client that runs there should give way.
    #[must_use = "the policy may want the processor to be taken from its client"]
    fn tick(&mut self, processor: ProcessorId, now: Nanoseconds) -> bool {
        let _ = (processor, now);
        false
    }

    /// The owner saw something from outside the clients that task-aware policies use (TAVS paper, §3, §4).
    /// The answer means the same as [`wake`](Policy::wake)'s.
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

/// Gives all calls that tell or ask a policy something to the macro `$define`, each with a name for it as a
/// value. Whatever passes calls on to another policy lists them by this.
#[doc(hidden)]
#[macro_export]
macro_rules! each_policy_call {
    ($define:ident) => {
        $define! {
            AddDomain add_domain(domain: DomainIndex, parent: DomainIndex, share: Share) -> ();
            RemoveDomain remove_domain(domain: DomainIndex) -> ();
            SetDomainShare set_domain_share(domain: DomainIndex, share: Share, now: Nanoseconds) -> ();
            Add add(client: ClientId, domain: DomainIndex, share: Share, now: Nanoseconds) -> ();
            Remove remove(client: ClientId, now: Nanoseconds) -> ();
            SetShare set_share(client: ClientId, share: Share, now: Nanoseconds) -> ();
            SetAllowed set_allowed(client: ClientId, processors: u64) -> ();
            Wake wake(client: ClientId, now: Nanoseconds) -> Option<ProcessorId>;
            Pick pick(processor: ProcessorId, now: Nanoseconds) -> Option<Decision>;
            Ran ran(client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) -> ();
            Tick tick(processor: ProcessorId, now: Nanoseconds) -> bool;
            Observe observe(observation: Observation, now: Nanoseconds) -> Option<ProcessorId>;
        }
    };
}

macro_rules! boxed {
    ($($variant:ident $call:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        /// A policy chosen at run time.
        impl<P: Policy + ?Sized> Policy for Box<P> {
            fn name(&self) -> &'static str {
                (**self).name()
            }

            fn keeps(&self, processor: ProcessorId) -> bool {
                (**self).keeps(processor)
            }

            fn knows_bounds(&self) -> bool {
                (**self).knows_bounds()
            }

            fn goes_ahead(&self, client: ClientId) -> Causes {
                (**self).goes_ahead(client)
            }

            fn tick_ns(&self) -> Option<Nanoseconds> {
                (**self).tick_ns()
            }

            fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
                (**self).counters(each);
            }

            $(fn $call(&mut self, $($argument: $kind),*) -> $answer {
                (**self).$call($($argument),*)
            })*
        }
    };
}

each_policy_call!(boxed);
