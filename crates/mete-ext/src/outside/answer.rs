//! An answer as one number (`bpf/answers.bpf.h`).

use mete_policy::{ClientId, Nanoseconds};

use crate::skeleton::outside::types::answer_bits;

const CLIENT_BITS: u32 = answer_bits::CLIENT_BITS.0;
const GENERATION_AT: u32 = answer_bits::GENERATION_AT.0;
const GENERATION_BITS: u32 = answer_bits::GENERATION_BITS.0;
const SLICE_AT: u32 = answer_bits::SLICE_AT.0;
const SLICE_BITS: u32 = answer_bits::SLICE_BITS.0;
const KEEPS_AT: u32 = answer_bits::KEEPS_AT.0;
const IS_ANSWER: u64 = 1 << (KEEPS_AT + 1);

/// The kernel ends a slice at the first tick after it, and a slice begins right after a tick as a rule. So
/// one that is told as long as it is to be would last a tick longer: half of the shortest usual tick is left
/// out.
const HALF_A_TICK: Nanoseconds = Nanoseconds::from_micros(500);

/// Nothing ends a slice but its end, a higher class or a task that the policy puts ahead; so none is longer than this,
/// whatever quantum and weights together make of it.
const LONGEST: Nanoseconds = Nanoseconds::from_millis(1000);
const _: () = assert!(LONGEST.get() / 1000 < 1 << SLICE_BITS);

/// This client runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub client: ClientId,
    /// The generation of the client that was decided about.
    pub generation: u32,
    pub slice: Nanoseconds,
    /// No client that wakes takes its processor from it before the slice is over: the policy need not be asked then.
    pub keeps: bool,
}

/// How long the kernel's side is to be told that a client runs, in microseconds, so that it runs for this slice.
pub(crate) fn slice_us(slice: Nanoseconds) -> u32 {
    let told = slice.min(LONGEST).saturating_sub(HALF_A_TICK).max(HALF_A_TICK);
    (told.get() / 1000) as u32
}

impl Answer {
    pub fn to_bits(self) -> u64 {
        let slice = u64::from(slice_us(self.slice));
        let generation = u64::from(generation_bits(self.generation));
        let client = u64::from(self.client.get()) & ((1 << CLIENT_BITS) - 1);
        let keeps = u64::from(self.keeps) << KEEPS_AT;
        IS_ANSWER | keeps | slice << SLICE_AT | generation << GENERATION_AT | client
    }

    /// As the kernel's side reads it: with the last bits of the generation, and a slice of which half a tick is left
    /// out.
    #[cfg(test)]
    pub fn of_bits(bits: u64) -> Option<Answer> {
        let part = |at: u32, width: u32| bits >> at & ((1 << width) - 1);
        (bits & IS_ANSWER != 0).then(|| Answer {
            client: ClientId::new(part(0, CLIENT_BITS) as u32),
            generation: part(GENERATION_AT, GENERATION_BITS) as u32,
            slice: Nanoseconds::from_micros(part(SLICE_AT, SLICE_BITS)),
            keeps: part(KEEPS_AT, 1) == 1,
        })
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
        let kept = |client, generation, slice| {
            let client = ClientId::new(client);
            let answer = Answer { client, generation, slice: Nanoseconds::new(slice), keeps: false };
            let read = Answer::of_bits(answer.to_bits()).unwrap();
            assert!(!read.keeps);
            let kept = Answer::of_bits(Answer { keeps: true, ..answer }.to_bits()).unwrap();
            assert_eq!(kept, Answer { keeps: true, ..read });
            (read.client.get(), read.generation, read.slice.get())
        };
        assert_eq!(kept(0, 0, 0), (0, 0, 500_000));
        assert_eq!(kept(16_383, 1, 4_000_000), (16_383, 1, 3_500_000));
        assert_eq!(kept(7, u32::MAX, u64::MAX), (7, 0x3f_ffff, 999_500_000));
        assert_eq!(Answer::of_bits(0), None);
    }
}
