//! An answer as one number (`bpf/answers.bpf.h`).

use mete_policy::{ClientId, Nanoseconds};

use crate::outside::memory::CLIENTS;

const CLIENT_BITS: u32 = CLIENTS.trailing_zeros();
const GENERATION_BITS: u32 = 22;
const SLICE_BITS: u32 = 27;
const IS_ANSWER: u64 = 1 << 63;

const _: () = assert!(CLIENTS.is_power_of_two() && CLIENT_BITS + GENERATION_BITS + SLICE_BITS == 63);

/// The kernel ends a slice at the first tick after it, and a slice begins right after a tick as a rule. So
/// one that is told as long as it is to be would last a tick longer: half of the shortest usual tick is left
/// out.
const HALF_A_TICK: Nanoseconds = Nanoseconds::from_micros(500);

/// This client runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub client: ClientId,
    /// The generation of the client that was decided about.
    pub generation: u32,
    pub slice: Nanoseconds,
}

impl Answer {
    pub fn to_bits(self) -> u64 {
        let slice = self.slice.saturating_sub(HALF_A_TICK).get() / 1000;
        let slice = slice.clamp(HALF_A_TICK.get() / 1000, (1 << SLICE_BITS) - 1);
        let generation = u64::from(generation_bits(self.generation));
        let client = u64::from(self.client.get()) & (CLIENTS as u64 - 1);
        IS_ANSWER | slice << (CLIENT_BITS + GENERATION_BITS) | generation << CLIENT_BITS | client
    }
}

/// What of a generation fits into an answer.
pub(crate) fn generation_bits(generation: u32) -> u32 {
    generation & ((1 << GENERATION_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_1_an_answer_holds_the_client_its_generation_and_the_slice() {
        let answer = |client, generation, slice| {
            let slice = Nanoseconds::new(slice);
            Answer { client: ClientId::new(client), generation, slice }.to_bits()
        };
        let parts = |bits: u64| (bits >> 63, bits >> 36 & 0x7ff_ffff, bits >> 14 & 0x3f_ffff, bits & 0x3fff);
        assert_eq!(parts(answer(0, 0, 0)), (1, 500, 0, 0));
        assert_eq!(parts(answer(16_383, 1, 4_000_000)), (1, 3500, 1, 16_383));
        assert_eq!(parts(answer(7, u32::MAX, u64::MAX)), (1, 0x7ff_ffff, 0x3f_ffff, 7));
    }
}
