//! The ring's memory ordering, checked by loom: every interleaving and every reordering that the memory model
//! allows (LOG-10). `RUSTFLAGS="--cfg loom" cargo test -p mete-log --test loom` runs it.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use mete_log::ring::{first_intact, publish, written, written_by_now};

/// The flag of an event of a program, which needs a model, too. Under loom its own crate cannot be built.
#[path = "../../mete-probe/src/flag.rs"]
mod flag;

/// What the flag uses instead of the machine's atomics.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU16, Ordering, fence};
}

/// A file of two rows of two words. Row `n` has `n + 1` twice, so that a torn row shows.
struct TwoRowFile {
    index: AtomicU64,
    words: [[AtomicU64; 2]; 2],
}

impl TwoRowFile {
    fn new() -> TwoRowFile {
        let row = || [AtomicU64::new(0), AtomicU64::new(0)];
        TwoRowFile { index: AtomicU64::new(0), words: [row(), row()] }
    }

    fn write(&self, number: u64) {
        let row = &self.words[number as usize % 2];
        publish(&self.index, number, row.iter().map(|word| (word, number + 1)));
    }

    fn copy(&self, number: u64) -> [u64; 2] {
        let row = &self.words[number as usize % 2];
        [row[0].load(Ordering::Relaxed), row[1].load(Ordering::Relaxed)]
    }
}

#[test]
fn log_10_a_row_that_the_reader_calls_good_is_whole_and_the_right_one() {
    loom::model(|| {
        let file = Arc::new(TwoRowFile::new());
        let writer = {
            let file = Arc::clone(&file);
            loom::thread::spawn(move || (0..3).for_each(|number| file.write(number)))
        };
        let end = written(&file.index);
        for number in first_intact(end, 2)..end {
            let row = file.copy(number);
            if number >= first_intact(written_by_now(&file.index), 2) {
                assert_eq!(row, [number + 1; 2]);
            }
        }
        writer.join().unwrap();
    });
}

#[test]
fn log_10_every_row_is_either_read_or_known_to_be_lost() {
    loom::model(|| {
        let file = Arc::new(TwoRowFile::new());
        let writer = {
            let file = Arc::clone(&file);
            loom::thread::spawn(move || (0..3).for_each(|number| file.write(number)))
        };
        let (mut next, mut read, mut lost) = (0, 0, 0);
        let mut pass = |file: &TwoRowFile| {
            let end = written(&file.index);
            while next < end {
                let row = file.copy(next);
                let intact = first_intact(written_by_now(&file.index), 2);
                if next >= intact {
                    assert_eq!(row, [next + 1; 2]);
                    read += 1;
                } else {
                    lost += 1;
                }
                next += 1;
            }
        };
        pass(&file);
        writer.join().unwrap();
        pass(&file);
        assert_eq!(read + lost, 3);
    });
}

/// Shows that the check can fail: without the second look at the index a row can be torn.
#[test]
#[should_panic(expected = "torn")]
fn log_10_without_the_second_look_at_the_index_a_row_may_be_torn() {
    loom::model(|| {
        let file = Arc::new(TwoRowFile::new());
        file.write(0);
        let writer = {
            let file = Arc::clone(&file);
            loom::thread::spawn(move || (1..4).for_each(|number| file.write(number)))
        };
        let end = written(&file.index);
        let row = file.copy(end - 1);
        assert_eq!(row[0], row[1], "torn");
        writer.join().unwrap();
    });
}

/// One thread gives an event its number and switches it on, and another one finds it on.
fn number_of_an_event_that_is_on(number: impl Fn(&AtomicU16) -> u16 + Send + Sync + Copy + 'static) {
    loom::model(move || {
        let event = Arc::new((AtomicU16::new(u16::MAX), AtomicBool::new(false)));
        let registry = {
            let event = Arc::clone(&event);
            loom::thread::spawn(move || {
                event.0.store(7, Ordering::Relaxed);
                flag::set(&event.1, true);
            })
        };
        if flag::is_set(&event.1) {
            assert_eq!(number(&event.0), 7, "a row of no event");
        }
        registry.join().unwrap();
    });
}

#[test]
fn log_2_a_thread_that_finds_an_event_on_knows_its_number() {
    number_of_an_event_that_is_on(flag::number);
}

/// Shows that the check can fail: without the fence a thread can see the flag before the number.
#[test]
#[should_panic(expected = "a row of no event")]
fn log_2_without_the_fence_a_thread_may_find_an_event_on_that_has_no_number() {
    number_of_an_event_that_is_on(|id| id.load(Ordering::Relaxed));
}
