//! What every policy has to know about its clients: which exist, which may run, and their shares.
//!
//! Policies ask the roster first. The roster refuses a transition that a client's state does not allow, so no
//! policy has to think about calls that make no sense. Methods on the decision path are marked `inline`,
//! because policies call them from other codegen units.

use alloc::vec;
use alloc::vec::Vec;

use crate::{ClientId, DomainIndex, ProcessorId, Setup, Share, Stop};

/// A client's state in its life (see [`Policy`](crate::Policy)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClientState {
    #[default]
    Absent,
    Blocked,
    Ready,
    Running,
}

#[derive(Clone, Copy)]
struct ClientEntry {
    share: Share,
    domain: DomainIndex,
    state: ClientState,
}

/// All clients, by number.
pub(crate) struct Roster {
    entries: Vec<ClientEntry>,
    domains: u16,
    processors: u16,
}

impl Roster {
    pub(crate) fn new(setup: &Setup) -> Roster {
        let absent = ClientEntry { share: Share::ONE, domain: DomainIndex::ROOT, state: ClientState::Absent };
        Roster {
            entries: vec![absent; setup.clients as usize],
            domains: setup.domains.max(1),
            processors: setup.processors.max(1),
        }
    }

    /// `None` if a processor does not exist; no client is picked for it then.
    #[inline]
    pub(crate) fn check(&self, processor: ProcessorId) -> Option<()> {
        (processor.get() < self.processors).then_some(())
    }

    /// The number of clients that there is room for; client numbers are below this.
    pub(crate) fn clients(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    #[inline]
    pub(crate) fn state(&self, client: ClientId) -> ClientState {
        self.entries.get(client.index()).map_or(ClientState::Absent, |entry| entry.state)
    }

    /// The client's share; [`Share::ONE`] for a number out of range.
    #[inline]
    pub(crate) fn share(&self, client: ClientId) -> Share {
        self.entries.get(client.index()).map_or(Share::ONE, |entry| entry.share)
    }

    /// The client's domain; the root for a number out of range.
    pub(crate) fn domain(&self, client: ClientId) -> DomainIndex {
        self.entries.get(client.index()).map_or(DomainIndex::ROOT, |entry| entry.domain)
    }

    /// Absent → blocked. A domain out of range is the root.
    pub(crate) fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share) -> bool {
        // Policies index arrays by domain without a check, so no client may have a number out of range.
        let domain = if domain.get() < self.domains { domain } else { DomainIndex::ROOT };
        match self.entries.get_mut(client.index()) {
            Some(entry) if entry.state == ClientState::Absent => {
                *entry = ClientEntry { share, domain, state: ClientState::Blocked };
                true
            }
            _ => false,
        }
    }

    /// Any state → absent; answers the state that the client left.
    pub(crate) fn remove(&mut self, client: ClientId) -> ClientState {
        match self.entries.get_mut(client.index()) {
            // `Absent` is the default. Share and domain stay readable: policies still take them off their
            // sums.
            Some(entry) => core::mem::take(&mut entry.state),
            None => ClientState::Absent,
        }
    }

    /// Sets the share and answers the state; nothing changes for a client that does not exist.
    pub(crate) fn set_share(&mut self, client: ClientId, share: Share) -> ClientState {
        match self.entries.get_mut(client.index()) {
            Some(entry) if entry.state != ClientState::Absent => {
                entry.share = share;
                entry.state
            }
            _ => ClientState::Absent,
        }
    }

    /// Blocked → ready.
    pub(crate) fn wake(&mut self, client: ClientId) -> bool {
        self.change(client, ClientState::Blocked, ClientState::Ready)
    }

    /// Ready → running.
    #[inline]
    pub(crate) fn run(&mut self, client: ClientId) -> bool {
        self.change(client, ClientState::Ready, ClientState::Running)
    }

    /// Running → ready, or blocked; `None` if the client did not run.
    #[inline]
    pub(crate) fn stop(&mut self, client: ClientId, stop: Stop) -> Option<ClientState> {
        let next = if stop == Stop::Blocked { ClientState::Blocked } else { ClientState::Ready };
        self.change(client, ClientState::Running, next).then_some(next)
    }

    #[inline]
    fn change(&mut self, client: ClientId, from: ClientState, to: ClientState) -> bool {
        match self.entries.get_mut(client.index()) {
            Some(entry) if entry.state == from => {
                entry.state = to;
                true
            }
            _ => false,
        }
    }
}
