//! The handler on an area of any content stays inside it. The area lies between guard words.
#![no_main]

use std::sync::atomic::{AtomicU64, Ordering};

use libfuzzer_sys::fuzz_target;
use mete_log::handler::{Clock, enter, exit, log};
use mete_log::{Area, DomainId, EventId, Record, Shape};

const GUARD: u64 = 0x5afe_5afe_5afe_5afe;
const GUARD_WORDS: usize = 64;

struct NoClock;

impl Clock for NoClock {
    fn hardware(&self) -> u64 {
        u64::MAX
    }

    fn tick(&self) -> u64 {
        u64::MAX
    }
}

#[repr(align(64))]
struct Line([AtomicU64; 8]);

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap()))
}

fuzz_target!(|bytes: &[u8]| {
    let shape = Shape::new(2, 2, 2, 12).unwrap();
    let lines = shape.area_bytes() / 64 + 2 * GUARD_WORDS / 8;
    let memory: Vec<Line> = (0..lines).map(|_| Line(std::array::from_fn(|_| AtomicU64::new(GUARD)))).collect();
    let all: Vec<&AtomicU64> = memory.iter().flat_map(|line| &line.0).collect();
    let inside = &all[GUARD_WORDS..all.len() - GUARD_WORDS];
    let base = std::ptr::NonNull::new(memory[GUARD_WORDS / 8..].as_ptr().cast_mut().cast()).unwrap();
    // SAFETY: the area's bytes lie in `memory`, aligned to 64, as atomics.
    let area = unsafe { Area::new(base, shape) };

    // Each step: poke a word, or log with these numbers.
    for step in words(bytes).collect::<Vec<_>>().chunks(2) {
        let (first, second) = (step[0], step.get(1).copied().unwrap_or(0));
        let control_words = shape.data_offset() / 8;
        if first & 1 == 0 {
            inside[(first >> 1) as usize % control_words].store(second, Ordering::Relaxed);
            continue;
        }
        let record = Record {
            event: EventId::new((first >> 1) as u16),
            domain: DomainId::new((first >> 17) as u16),
            correspondent: DomainId::new((first >> 33) as u16),
            counter: second,
        };
        log(area, &NoClock, record);
        if enter(area, record.domain, record.event) {
            exit(area, &NoClock, record);
        }
    }
    let guards = all[..GUARD_WORDS].iter().chain(&all[all.len() - GUARD_WORDS..]);
    assert!(guards.into_iter().all(|word| word.load(Ordering::Relaxed) == GUARD));
});
