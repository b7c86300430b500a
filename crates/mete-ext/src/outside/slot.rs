//! What is decided for a processor, and what is decided and has none yet.

use std::collections::VecDeque;

use mete_policy::{ClientId, Decision, Nanoseconds};

use crate::outside::answer::generation_bits;

/// A client that was chosen for a processor. It runs there, or is to run there at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub client: ClientId,
    /// The generation of the client that was decided about.
    pub generation: u32,
    /// When it was chosen.
    pub at: Nanoseconds,
    /// The processor for which the policy has chosen it: another one, if the client was put aside.
    pub by: usize,
    /// The policy was not asked: no other client that waits may run there.
    pub is_alone: bool,
}

impl Chosen {
    /// Whether the policy has chosen it for this processor.
    pub fn is_for(&self, processor: usize) -> bool {
        self.by == processor && !self.is_alone
    }

    /// Whether a decision about this generation of the client is this one.
    pub fn is_about(&self, client: ClientId, generation: u32) -> bool {
        self.client == client && generation_bits(self.generation) == generation_bits(generation)
    }
}

/// A client that the policy has chosen for a processor that does not carry it out: the client may not run there,
/// or the processor is absent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PutAside {
    pub decision: Decision,
    /// The processor.
    pub by: usize,
}

/// All clients that are put aside, in the order in which they were. Their turn has come, so they are next where they may
/// run.
#[derive(Debug)]
pub(crate) struct Aside(VecDeque<PutAside>);

impl Aside {
    pub fn with_room(most: usize) -> Aside {
        Aside(VecDeque::with_capacity(most))
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn at(&self, place: usize) -> Option<ClientId> {
        self.0.get(place).map(|aside| aside.decision.client)
    }

    pub fn put(&mut self, decision: Decision, by: usize) {
        self.0.push_back(PutAside { decision, by });
    }

    pub fn has(&self, client: ClientId) -> bool {
        self.0.iter().any(|aside| aside.decision.client == client)
    }

    pub fn forget(&mut self, client: ClientId) {
        self.0.retain(|aside| aside.decision.client != client);
    }

    /// The first one of which this is true is there no more.
    pub fn take(&mut self, is_it: impl FnMut(&PutAside) -> bool) -> Option<PutAside> {
        let place = self.0.iter().position(is_it)?;
        self.0.remove(place)
    }

    /// The first one that was chosen for this processor and of which this is true.
    pub fn find(&self, by: usize, mut is_it: impl FnMut(ClientId) -> bool) -> Option<ClientId> {
        let clients = self.0.iter().filter(|aside| aside.by == by).map(|aside| aside.decision.client);
        clients.into_iter().find(|client| is_it(*client))
    }
}
