//! What is decided for a processor.

use mete_policy::{ClientId, Nanoseconds};

use crate::outside::answer::generation_bits;

/// A client that was chosen for a processor. It runs there, or is to run there at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub client: ClientId,
    /// The generation of the client that was decided about.
    pub generation: u32,
    /// When it was chosen.
    pub at: Nanoseconds,
}

impl Chosen {
    /// Whether a decision about this generation of the client is this one.
    pub fn is_about(&self, client: ClientId, generation: u32) -> bool {
        self.client == client && generation_bits(self.generation) == generation_bits(generation)
    }
}
