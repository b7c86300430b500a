//! What the manager knows of a client.

use std::collections::BTreeMap;

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
    /// What it had used when it was told so.
    pub paused_at: Nanoseconds,
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
pub(crate) struct Clients<P>(BTreeMap<u32, Client<P>>);

impl<P> Clients<P> {
    pub fn new() -> Clients<P> {
        Clients(BTreeMap::new())
    }

    pub fn get(&mut self, number: ClientId) -> Option<&mut Client<P>> {
        self.0.get_mut(&number.get())
    }

    pub fn put(&mut self, number: ClientId, client: Client<P>) {
        self.0.insert(number.get(), client);
    }

    pub fn take(&mut self, number: ClientId) -> Option<Client<P>> {
        self.0.remove(&number.get())
    }

    /// The numbers of all clients of which this is true.
    pub fn numbers_that(&self, is_one: impl Fn(&Client<P>) -> bool) -> Vec<ClientId> {
        let there = self.0.iter().filter(|(_, client)| is_one(client));
        there.map(|(number, _)| ClientId::new(*number)).collect()
    }
}
