//! What the manager knows of a client.

use mete_policy::{ClientId, DomainIndex, Nanoseconds};

/// What the policy takes a client for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Blocked. It is not paused, so that it can wake.
    Away,
    /// Ready. It is paused, unless it has gone to sleep since it was seen to compute.
    Ready,
    /// Running, on behalf of this processor. The kernel finds its place.
    Chosen(usize),
}

/// A process that is a client.
#[derive(Debug)]
pub(crate) struct Client<P> {
    pub process: P,
    pub domain: DomainIndex,
    pub state: State,
    /// Whether it waits because it was told to.
    pub is_paused: bool,
    /// What it had used when it was looked at last, and up to where the policy was told.
    pub used: Nanoseconds,
    pub told: Nanoseconds,
}

impl<P> Client<P> {
    /// What it has used of which the policy was not told; the policy is told now.
    pub fn charge(&mut self) -> Nanoseconds {
        let ran = self.untold();
        self.told = self.used;
        ran
    }

    pub fn untold(&self) -> Nanoseconds {
        self.used.saturating_sub(self.told)
    }
}

/// All clients, by number.
#[derive(Debug)]
pub(crate) struct Clients<P>(Vec<Option<Client<P>>>);

impl<P> Clients<P> {
    pub fn with_room(most: usize) -> Clients<P> {
        Clients((0..most).map(|_| None).collect())
    }

    pub fn get(&mut self, number: ClientId) -> Option<&mut Client<P>> {
        self.0.get_mut(number.index())?.as_mut()
    }

    pub fn put(&mut self, number: ClientId, client: Client<P>) {
        if let Some(place) = self.0.get_mut(number.index()) {
            *place = Some(client);
        }
    }

    pub fn take(&mut self, number: ClientId) -> Option<Client<P>> {
        self.0.get_mut(number.index())?.take()
    }

    /// The numbers of all clients of which this is true.
    pub fn numbers_that(&self, is_one: impl Fn(&Client<P>) -> bool) -> Vec<ClientId> {
        let there = self.0.iter().enumerate().filter(|(_, client)| client.as_ref().is_some_and(&is_one));
        there.map(|(number, _)| ClientId::at(number)).collect()
    }
}
