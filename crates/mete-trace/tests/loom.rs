//! The buffer's memory ordering, model-checked: two producers that interrupt each other anywhere, and a
//! flush thread (KLOG-5, KLOG-6). Run by `RUSTFLAGS="--cfg loom" cargo test -p mete-trace --test loom`.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use mete_trace::protocol::{claim, commit, committed, release, reserved};
use mete_trace::record::{Head, unfold};

const RECORD: u32 = 16;
/// Room for two records, so that places are used again.
const CAPACITY: u32 = 32;

struct Ring {
    reserve: AtomicU64,
    released: AtomicU64,
    data: [AtomicU64; CAPACITY as usize / 8],
}

impl Ring {
    fn new() -> Ring {
        let zero = || AtomicU64::new(0);
        Ring { reserve: zero(), released: zero(), data: std::array::from_fn(|_| zero()) }
    }

    /// Records one event whose body repeats its serial number, so that a torn record shows.
    fn produce(&self) {
        let Ok(place) = claim(&self.reserve, &self.released, CAPACITY, RECORD, || 0) else { return };
        let words = &self.data[place.offset as usize / 8..];
        let head = Head { event: 1, bytes: RECORD as u16, serial: place.serial };
        commit(&words[0], head.to_word(), std::iter::once((&words[1], u64::from(place.serial) + 100)));
    }
}

/// The flush thread: position, next serial number, records taken.
#[derive(Default)]
struct Flush {
    position: u64,
    next: u64,
    taken: u64,
    lost: u64,
}

impl Flush {
    fn pass(&mut self, ring: &Ring) {
        let end = u64::from(reserved(&ring.reserve).words) * 8;
        while self.position < end {
            let words = &ring.data[(self.position as usize & (CAPACITY as usize - 1)) / 8..];
            let word = committed(&words[0]);
            if word == 0 {
                break;
            }
            let serial = unfold(self.next, Head::from_word(word).serial);
            assert_eq!(words[1].load(Ordering::Relaxed), serial + 100, "a torn record");
            self.lost += serial - self.next;
            self.next = serial + 1;
            self.taken += 1;
            words[0].store(0, Ordering::Relaxed);
            words[1].store(0, Ordering::Relaxed);
            self.position += u64::from(RECORD);
        }
        release(&ring.released, self.position);
    }
}

fn every_record_is_whole_and_accounted_for(producers: [usize; 2]) {
    loom::model(move || {
        let ring = Arc::new(Ring::new());
        let threads = producers.map(|events| {
            let ring = Arc::clone(&ring);
            loom::thread::spawn(move || (0..events).for_each(|_| ring.produce()))
        });
        let mut flush = Flush::default();
        flush.pass(&ring);
        for thread in threads {
            thread.join().unwrap();
        }
        flush.pass(&ring);
        let occurred = u64::from(reserved(&ring.reserve).serial);
        assert_eq!(occurred, producers.iter().sum::<usize>() as u64);
        flush.lost += occurred - flush.next;
        assert_eq!(flush.taken + flush.lost, occurred);
        assert!(ring.data.iter().all(|word| word.load(Ordering::Relaxed) == 0), "a place was not cleared");
    });
}

/// The check is not empty: in some order of steps the flush thread takes a record while the producer runs.
#[test]
#[should_panic(expected = "taken while recording")]
fn klog_6_the_model_has_runs_in_which_records_are_taken_while_others_are_written() {
    loom::model(|| {
        let ring = Arc::new(Ring::new());
        let producer = {
            let ring = Arc::clone(&ring);
            loom::thread::spawn(move || (0..2).for_each(|_| ring.produce()))
        };
        let mut flush = Flush::default();
        flush.pass(&ring);
        producer.join().unwrap();
        assert_ne!(flush.taken, 1, "taken while recording");
    });
}

#[test]
fn klog_6_records_of_two_producers_are_whole_and_accounted_for() {
    every_record_is_whole_and_accounted_for([2, 1]);
}

#[test]
fn klog_5_places_are_used_again_only_when_they_are_clear() {
    every_record_is_whole_and_accounted_for([4, 0]);
}

/// The check can fail: the record of a producer that commits without release is seen torn.
#[test]
#[should_panic(expected = "a torn record")]
fn klog_6_without_release_a_record_may_be_torn() {
    loom::model(|| {
        let ring = Arc::new(Ring::new());
        let producer = {
            let ring = Arc::clone(&ring);
            loom::thread::spawn(move || {
                let place = claim(&ring.reserve, &ring.released, CAPACITY, RECORD, || 0).unwrap();
                ring.data[1].store(u64::from(place.serial) + 100, Ordering::Relaxed);
                let head = Head { event: 1, bytes: RECORD as u16, serial: place.serial };
                ring.data[0].store(head.to_word(), Ordering::Relaxed);
            })
        };
        Flush::default().pass(&ring);
        producer.join().unwrap();
    });
}
