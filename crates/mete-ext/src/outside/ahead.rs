//! Which clients go ahead when they wake: the kernel's side knows before, and need not ask (`bpf/ahead.bpf.h`).

use mete_policy::{Causes, ClientId, Policy};

use crate::outside::answer::slice_us;
use crate::outside::client::Clients;
use crate::outside::memory::{AheadView, Memory};
use crate::outside::swap::Owned;

/// The clients that the policy was told to be blocked since the kernel's side was told last.
pub(crate) struct Ahead(Vec<ClientId>);

impl Ahead {
    pub fn with_room(most: usize) -> Ahead {
        Ahead(Vec::with_capacity(most))
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// A client is blocked. If there is no room, the policy is asked about it when it wakes, as about any other.
    pub fn note(&mut self, client: ClientId) {
        if self.0.len() < self.0.capacity() {
            self.0.push(client);
        }
    }

    /// Asks the policy about them, and tells the kernel's side.
    pub fn tell(&mut self, memory: &Memory, clients: &mut Clients, policy: &Owned) {
        for number in self.0.drain(..) {
            let Some(client) = clients.get(number).filter(|client| client.is_away) else { continue };
            let (causes, slice_us) = (policy.goes_ahead(number), slice_us(client.slice));
            let processor = client.processor.filter(|_| causes != Causes::NONE);
            memory.set_ahead(number, processor.map(|processor| AheadView { processor, slice_us, causes }));
        }
    }
}
