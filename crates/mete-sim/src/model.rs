//! The interface between the host and what runs on it: bodies of clients, devices, the world outside.
//!
//! ```text
//!             next: what now?  ──▶ Compute(ns) │ Continue │ Block │ Yield │ Exit
//!   Host ──▶  advance: you ran ──▶
//!             deliver: a signal ─▶ Wake │ Pending
//!             event: your timer ─▶
//!                  └── Context: notify, observe, after, cancel, note ──▶ Host
//! ```
//!
//! A [`Model`] holds the bodies of all clients. It never sees the policy, and the policy never sees it:
//! everything that happens between them goes through the host.

use std::collections::VecDeque;

use mete_policy::{ClientId, DomainIndex, Nanoseconds, Observation, Share};

use crate::queue::{Class, Queue, Ticket};
use crate::recorder::Note;

/// What a client does next, now that it has a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It computes for this long and is then asked again. If it loses its processor or is interrupted before,
    /// [`Model::advance`] tells it how much of that it got, and it is asked anew.
    Compute(Nanoseconds),
    /// It acted on others. The host carries that out and asks again, unless the client has lost its processor
    /// by it.
    Continue,
    /// It waits. It runs again after a signal that the model answers with [`Reaction::Wake`].
    Block,
    /// It gives way and stays runnable.
    Yield,
    /// It has exited, for ever.
    Exit,
}

/// What a signal does to the client that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// A blocked client wakes; a running one is interrupted and asked what it does next.
    Wake,
    /// The signal is kept; the client goes on as it is.
    Pending,
}

/// What runs on the clients, and the world around them.
pub trait Model {
    /// The signals that clients get.
    type Signal: Copy;
    /// The events that the world outside the clients sends to itself: devices, links, remote users.
    type Event: Copy;

    /// What `client` does next. It is running.
    fn next(&mut self, client: ClientId, context: &mut Context<Self>) -> Step;

    /// `client` has had the processor for `ran_ns` since the last call of this or of [`Model::next`].
    fn advance(&mut self, client: ClientId, ran_ns: Nanoseconds);

    /// A signal arrives for `client`, which may be in any state.
    fn deliver(&mut self, client: ClientId, signal: Self::Signal, context: &mut Context<Self>) -> Reaction;

    /// An event that [`Context::after`] announced is due.
    fn event(&mut self, event: Self::Event, context: &mut Context<Self>);

    /// What the host sees of a signal from outside. The policy is told before the client is. `None` for
    /// signals that do not concern the host.
    fn seen(&self, client: ClientId, signal: Self::Signal) -> Option<mete_policy::Event> {
        let _ = (client, signal);
        None
    }

    /// The client that has woken `client`, if a client has.
    fn waker(&self, client: ClientId) -> Option<ClientId> {
        let _ = client;
        None
    }

    /// How long it takes, in addition to a switch, until `client` computes on a processor that was idle and
    /// is given to it now. `is_remote`: its waker runs on another processor.
    fn start_ns(&mut self, client: ClientId, is_remote: bool) -> Nanoseconds {
        let _ = (client, is_remote);
        Nanoseconds::ZERO
    }

    /// How long the running client goes on when the wake-up of `client` takes its processor.
    fn make_way_ns(&mut self, client: ClientId, is_remote: bool) -> Nanoseconds {
        let _ = (client, is_remote);
        Nanoseconds::ZERO
    }

    /// `client` has got a processor; a call of [`Model::next`] follows.
    fn dispatched(&mut self, client: ClientId, context: &mut Context<Self>) {
        let _ = (client, context);
    }
}

/// A request of a model to the host. Requests are carried out in order, as soon as the model returns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act<S> {
    Deliver { to: ClientId, signal: S },
    Observe(Observation),
    SetShare { client: ClientId, share: Share },
    SetDomainShare { domain: DomainIndex, share: Share },
    Note(Note),
}

/// Everything in the host's queue. The moments when processors are due are kept elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) enum QueuedEvent<S, E> {
    Tick(usize),
    /// The processor is taken from its client, unless it has been given to another one since.
    Preempt {
        processor: usize,
        turn: u64,
    },
    Wake(ClientId),
    Deliver {
        to: ClientId,
        signal: S,
    },
    World(E),
}

pub(crate) type HostEvent<M> = QueuedEvent<<M as Model>::Signal, <M as Model>::Event>;

/// What a model can do while it is called.
pub struct Context<M: Model + ?Sized> {
    pub(crate) now_ns: Nanoseconds,
    pub(crate) acts: VecDeque<Act<M::Signal>>,
    pub(crate) queue: Queue<HostEvent<M>>,
}

impl<M: Model + ?Sized> Context<M> {
    /// The present time.
    pub fn now_ns(&self) -> Nanoseconds {
        self.now_ns
    }

    /// Sends a signal at once.
    pub fn notify(&mut self, to: ClientId, signal: M::Signal) {
        self.acts.push_back(Act::Deliver { to, signal });
    }

    /// Sends a signal after a delay.
    pub fn notify_after(&mut self, delay_ns: Nanoseconds, to: ClientId, signal: M::Signal) -> Ticket {
        self.announce(delay_ns, QueuedEvent::Deliver { to, signal })
    }

    /// Has [`Model::event`] called after a delay.
    pub fn after(&mut self, delay_ns: Nanoseconds, event: M::Event) -> Ticket {
        self.announce(delay_ns, QueuedEvent::World(event))
    }

    /// Puts an event from outside into the host's queue.
    pub(crate) fn announce(&mut self, delay_ns: Nanoseconds, event: HostEvent<M>) -> Ticket {
        self.queue.push(self.now_ns.saturating_add(delay_ns), Class::Outside, event)
    }

    /// Takes back what [`Context::after`] or [`Context::notify_after`] announced, if it has not happened yet.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.queue.cancel(ticket);
    }

    /// Lets the policy see something, as a host sees it from outside.
    pub fn observe(&mut self, observation: Observation) {
        self.acts.push_back(Act::Observe(observation));
    }

    /// Changes a client's share.
    pub fn set_share(&mut self, client: ClientId, share: Share) {
        self.acts.push_back(Act::SetShare { client, share });
    }

    /// Changes a domain's share.
    pub fn set_domain_share(&mut self, domain: DomainIndex, share: Share) {
        self.acts.push_back(Act::SetDomainShare { domain, share });
    }

    /// Reports something to the recorder that only the model knows.
    pub fn note(&mut self, note: Note) {
        self.acts.push_back(Act::Note(note));
    }
}
