//! Garbled memory harms neither side (LOG-11), whatever pattern any word gets at any time.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use common::{SetClock, global_log, record};
use mete_log::handler::{enter, exit, log};
use mete_log::{Area, Control, Cursor, Entries, FileId, ReadError, Shape, Stamp};
use proptest::prelude::*;

/// An area in ordinary memory with guard words on both sides, which show writes outside of it.
struct Guarded {
    memory: Vec<AtomicU64>,
    shape: Shape,
}

const GUARD_WORDS: usize = 512;
const GUARD: u64 = 0x5afe_5afe_5afe_5afe;

impl Guarded {
    fn new(shape: Shape) -> Guarded {
        let words = shape.area_bytes() / 8 + 2 * GUARD_WORDS + 8;
        Guarded { memory: (0..words).map(|_| AtomicU64::new(GUARD)).collect(), shape }
    }

    fn first(&self) -> usize {
        let align = self.memory[GUARD_WORDS..].as_ptr().align_offset(64);
        GUARD_WORDS + align
    }

    fn area(&self) -> Area<'_> {
        let base = std::ptr::NonNull::from(&self.memory[self.first()]).cast();
        // SAFETY: the vector holds the area's bytes from `first` on, aligned to 64, as atomics.
        unsafe { Area::new(base, self.shape) }
    }

    fn words(&self) -> &[AtomicU64] {
        &self.memory[self.first()..self.first() + self.shape.area_bytes() / 8]
    }

    fn guards_are_intact(&self) -> bool {
        let end = self.first() + self.shape.area_bytes() / 8;
        let mut guards = self.memory[..self.first()].iter().chain(&self.memory[end..]);
        guards.all(|word| word.load(Ordering::Relaxed) == GUARD)
    }
}

fn shape() -> Shape {
    Shape::new(2, 2, 2, 12).unwrap()
}

proptest! {
    #[test]
    fn log_11_the_producer_stays_inside_its_area_whatever_it_contains(
        garbage in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 1..64),
        calls in prop::collection::vec((any::<u16>(), any::<u16>(), any::<u16>(), any::<u64>()), 1..64),
    ) {
        let guarded = Guarded::new(shape());
        let area = guarded.area();
        let control_words = guarded.shape.data_offset() / 8;
        for (at, word) in &garbage {
            guarded.words()[at.index(control_words)].store(*word, Ordering::Relaxed);
        }
        for (event, domain, correspondent, counter) in calls {
            let record = record(event, domain, correspondent, counter);
            log(area, &SetClock::default(), record);
            enter(area, record.domain, record.event);
            exit(area, &SetClock::default(), record);
        }
        prop_assert!(guarded.guards_are_intact());
    }

    #[test]
    fn log_11_a_garbled_control_word_never_leads_outside(control: u64, index: u64) {
        let guarded = Guarded::new(shape());
        let area = guarded.area();
        for file in FileId::all_below(4) {
            let register = area.register(file);
            register.set_control(Control::from_bits(control | Control::new(Entries::NONE, Stamp::None, false, 0, 0).to_bits()));
            register.index.store(index, Ordering::Relaxed);
            register.busy.store(0, Ordering::Relaxed);
        }
        log(area, &SetClock::default(), record(0, 1, 2, 3));
        prop_assert!(guarded.guards_are_intact());
    }

    #[test]
    fn log_11_the_reader_ends_and_reports_whatever_the_producer_writes(
        control: u64, indices in prop::collection::vec(any::<u64>(), 1..20),
    ) {
        let guarded = Guarded::new(shape());
        let area = guarded.area();
        let file = FileId::new(1);
        area.register(file).index.store(0, Ordering::Relaxed);
        let mut cursor = Cursor::new(area, file, Control::from_bits(control));
        let mut before = 0;
        for index in indices {
            area.register(file).index.store(index, Ordering::Relaxed);
            match cursor.poll_rows(area, |rows| assert!(rows.words().len() <= 2048)) {
                Ok(poll) => prop_assert_eq!(poll.rows + poll.overwritten, index - before),
                Err(ReadError::IndexWentBack { before: was, now, .. }) => {
                    prop_assert!(index < before);
                    prop_assert_eq!((was, now), (before, index));
                }
            }
            before = index;
        }
    }
}

/// The same from another thread, at full speed, on both sides at once.
#[test]
fn log_11_scribbling_while_rows_are_written_and_read_harms_neither_side() {
    let guarded = Guarded::new(shape());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = 0x9e37_79b9_7f4a_7c15_u64;
            for _ in 0..400_000 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let words = guarded.words();
                words[random as usize % words.len()].store(random.rotate_left(17), Ordering::Relaxed);
            }
            stop.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                log(guarded.area(), &SetClock::default(), record(number as u16, 1, 2, number));
            }
        });
        scope.spawn(|| {
            let control = Control::new(Entries::ALL, Stamp::Hardware, false, 5, 0);
            let mut cursor = Cursor::new(guarded.area(), FileId::new(1), control);
            while !stop.load(Ordering::Relaxed) {
                let _ = cursor.poll_rows(guarded.area(), |rows| assert!(rows.iter().len() <= 128));
            }
        });
    });
    assert!(guarded.guards_are_intact());
}

#[test]
fn log_11_an_index_that_leaps_shows_as_loss_and_one_that_falls_as_an_error() {
    let (region, file, control) = global_log(Entries::ALL, Stamp::None, false, 8);
    let area = region.area(0);
    let mut reader = Cursor::new(area, file, control);
    area.register(file).index.store(1 << 60, Ordering::Relaxed);
    let poll = reader.poll(area, |_| {}).unwrap();
    assert_eq!((poll.rows, poll.overwritten), (7, (1 << 60) - 7));
    area.register(file).index.store(5, Ordering::Relaxed);
    let error = reader.poll(area, |_| {}).unwrap_err();
    assert_eq!(error, ReadError::IndexWentBack { file, before: 1 << 60, now: 5 });
    log(area, &SetClock::default(), record(0, 1, 2, 3));
    assert_eq!(reader.poll(area, |_| {}).unwrap().rows, 1);
}
