//! What every policy has to know of its clients: who exists, who may run, with which share.
//!
//! Policies ask the roster first; a transition that a client's state does not allow is refused here,
//! once, so that no policy need think about calls that make no sense.

use alloc::vec;
use alloc::vec::Vec;

use crate::{ClientId, DomainIndex, ProcessorId, Setup, Share, Stop};

/// Where a client is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Absent,
    Blocked,
    Ready,
    Running,
}

#[derive(Clone, Copy)]
struct Entry {
    share: Share,
    domain: DomainIndex,
    state: State,
}

/// All clients, by number.
pub(crate) struct Roster {
    entries: Vec<Entry>,
    domains: DomainIndex,
    processors: ProcessorId,
}

impl Roster {
    pub(crate) fn new(setup: &Setup) -> Roster {
        let nobody = Entry { share: Share::ONE, domain: 0, state: State::Absent };
        Roster {
            entries: vec![nobody; setup.clients as usize],
            domains: setup.domains.max(1),
            processors: setup.processors.max(1),
        }
    }

    /// Whether there is such a processor; nobody is picked for one that there is not.
    pub(crate) fn has_processor(&self, processor: ProcessorId) -> bool {
        processor < self.processors
    }

    /// How many clients there may be; their numbers are below this.
    pub(crate) fn clients(&self) -> ClientId {
        ClientId::try_from(self.entries.len()).unwrap_or(ClientId::MAX)
    }

    pub(crate) fn state(&self, client: ClientId) -> State {
        self.entries.get(client as usize).map_or(State::Absent, |entry| entry.state)
    }

    /// The client's share; [`Share::ONE`] for a number out of range.
    pub(crate) fn share(&self, client: ClientId) -> Share {
        self.entries.get(client as usize).map_or(Share::ONE, |entry| entry.share)
    }

    /// The client's domain; the root for a number out of range.
    pub(crate) fn domain(&self, client: ClientId) -> DomainIndex {
        self.entries.get(client as usize).map_or(0, |entry| entry.domain)
    }

    /// Absent → blocked. A domain out of range is the root.
    pub(crate) fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share) -> bool {
        let domain = if domain < self.domains { domain } else { 0 };
        match self.entries.get_mut(client as usize) {
            Some(entry) if entry.state == State::Absent => {
                *entry = Entry { share, domain, state: State::Blocked };
                true
            }
            _ => false,
        }
    }

    /// Any state → absent; the answer is the state that it left.
    pub(crate) fn remove(&mut self, client: ClientId) -> State {
        match self.entries.get_mut(client as usize) {
            Some(entry) => core::mem::take(&mut entry.state),
            None => State::Absent,
        }
    }

    /// Sets the share and answers the state; nothing changes for who does not exist.
    pub(crate) fn set_share(&mut self, client: ClientId, share: Share) -> State {
        match self.entries.get_mut(client as usize) {
            Some(entry) if entry.state != State::Absent => {
                entry.share = share;
                entry.state
            }
            _ => State::Absent,
        }
    }

    /// Blocked → ready.
    pub(crate) fn wake(&mut self, client: ClientId) -> bool {
        self.change(client, State::Blocked, State::Ready)
    }

    /// Ready → running.
    pub(crate) fn run(&mut self, client: ClientId) -> bool {
        self.change(client, State::Ready, State::Running)
    }

    /// Running → ready, or blocked; `None` when it did not run.
    pub(crate) fn stop(&mut self, client: ClientId, stop: Stop) -> Option<State> {
        let next = if stop == Stop::Blocked { State::Blocked } else { State::Ready };
        self.change(client, State::Running, next).then_some(next)
    }

    fn change(&mut self, client: ClientId, from: State, to: State) -> bool {
        match self.entries.get_mut(client as usize) {
            Some(entry) if entry.state == from => {
                entry.state = to;
                true
            }
            _ => false,
        }
    }
}
