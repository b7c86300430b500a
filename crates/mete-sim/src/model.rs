//! The seam between the host and what runs on it: bodies of clients, devices, the world outside.
//!
//! ```text
//!             next: what now?  ──▶ Compute(ns) │ Continue │ Block │ Yield │ Exit
//!   Host ──▶  advance: you ran ──▶
//!             deliver: a signal ─▶ Wake │ Pending
//!             event: your timer ─▶
//!                  └── Context: notify, observe, after, cancel, note ──▶ Host
//! ```
//!
//! A [`Model`] holds the bodies of all clients. It never sees the policy and the policy never sees it:
//! what happens between them goes through the host.

use std::collections::VecDeque;

use mete_policy::{ClientId, DomainIndex, Nanoseconds, Observation, Share};

use crate::queue::{Class, Queue, Ticket};
use crate::recorder::Note;

/// What a client does next, now that it has a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It computes for this long and is then asked again. [`Model::advance`] tells it what of that it
    /// got before it lost its processor or was interrupted, and it is asked anew.
    Compute(Nanoseconds),
    /// It acted on others: the host carries that out and asks again, unless the client has lost its
    /// processor by it.
    Continue,
    /// It waits. The next word about it is a signal that is answered by [`Reaction::Wake`].
    Block,
    /// It gives way and stays runnable.
    Yield,
    /// It is over, for ever.
    Exit,
}

/// What a signal does to the client that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// If it is blocked it wakes; if it is running it is interrupted and asked what it does now.
    Wake,
    /// It is noted; the client goes on as it is.
    Pending,
}

/// What runs on the clients, and the world around them.
pub trait Model {
    /// What clients are sent.
    type Signal: Copy;
    /// What the world outside the clients sends to itself: devices, links, remote users.
    type Event: Copy;

    /// What `client` does now. It is running.
    fn next(&mut self, client: ClientId, context: &mut Context<'_, Self>) -> Step;

    /// `client` has had `ran_ns` of the processor since it was asked or told last.
    fn advance(&mut self, client: ClientId, ran_ns: Nanoseconds);

    /// A signal arrives for `client`, whatever that is doing.
    fn deliver(
        &mut self,
        client: ClientId,
        signal: Self::Signal,
        context: &mut Context<'_, Self>,
    ) -> Reaction;

    /// An event that was asked for by [`Context::after`] has come.
    fn event(&mut self, event: Self::Event, context: &mut Context<'_, Self>);

    /// What the host sees of a signal, from outside: the policy is told of it before the client is.
    /// `None` for signals that are none of the host's business.
    fn seen(&self, client: ClientId, signal: Self::Signal) -> Option<mete_policy::Event> {
        let _ = (client, signal);
        None
    }

    /// Who has woken `client`, if a client has.
    fn waker(&self, client: ClientId) -> Option<ClientId> {
        let _ = client;
        None
    }

    /// What it takes, besides a switch, until `client` computes on a processor that was idle and is given to it now.
    /// `is_remote`: its waker runs on another one.
    fn start_ns(&mut self, client: ClientId, is_remote: bool) -> Nanoseconds {
        let _ = (client, is_remote);
        0
    }

    /// How long the running client goes on when `client`'s wake-up takes its processor.
    fn make_way_ns(&mut self, client: ClientId, is_remote: bool) -> Nanoseconds {
        let _ = (client, is_remote);
        0
    }

    /// `client` has got a processor; [`Model::next`] follows.
    fn dispatched(&mut self, client: ClientId, context: &mut Context<'_, Self>) {
        let _ = (client, context);
    }
}

/// What a model asks of the host; carried out in order, as soon as the model returns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act<S> {
    Deliver { to: ClientId, signal: S },
    Observe(Observation),
    SetShare { client: ClientId, share: Share },
    SetDomainShare { domain: DomainIndex, share: Share },
    Note(Note),
}

/// Everything in the host's queue; when processors are due is not.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event<S, E> {
    Tick(usize),
    /// The processor is taken from whom it has been given to, unless that is another one by now.
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

pub(crate) type HostEvent<M> = Event<<M as Model>::Signal, <M as Model>::Event>;

/// What a model may do while it is asked.
pub struct Context<'a, M: Model + ?Sized> {
    pub(crate) now_ns: Nanoseconds,
    pub(crate) acts: &'a mut VecDeque<Act<M::Signal>>,
    pub(crate) queue: &'a mut Queue<HostEvent<M>>,
}

impl<M: Model + ?Sized> Context<'_, M> {
    /// The present time.
    #[must_use]
    pub fn now_ns(&self) -> Nanoseconds {
        self.now_ns
    }

    /// Sends a signal at once.
    pub fn notify(&mut self, to: ClientId, signal: M::Signal) {
        self.acts.push_back(Act::Deliver { to, signal });
    }

    /// Sends a signal after a while.
    pub fn notify_after(&mut self, delay_ns: Nanoseconds, to: ClientId, signal: M::Signal) -> Ticket {
        self.queue.push(self.now_ns.saturating_add(delay_ns), Class::Outside, Event::Deliver { to, signal })
    }

    /// Has [`Model::event`] called after a while.
    pub fn after(&mut self, delay_ns: Nanoseconds, event: M::Event) -> Ticket {
        self.queue.push(self.now_ns.saturating_add(delay_ns), Class::Outside, Event::World(event))
    }

    /// Takes back what [`Context::after`] or [`Context::notify_after`] announced, unless it has happened.
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

    /// Tells the recorder something that only the model knows.
    pub fn note(&mut self, note: Note) {
        self.acts.push_back(Act::Note(note));
    }
}
