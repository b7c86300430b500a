//! The recording buffer: strict order, exact loss, and no harm from garbled content (KLOG-5, KLOG-6).
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![cfg(not(loom))]

mod common;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{NUMBERED, area, buffer};
use mete_trace::layout::{HEADER_BYTES, RELEASED_OFFSET, RESERVE_OFFSET};
use mete_trace::record::{Head, MAX_BYTES};
use mete_trace::{Consumer, Garbled, Outcome, Producer, Ticks};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Record { fields: usize },
    Drain { at_most: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..=MAX_BYTES / 8 - 2).prop_map(|fields| Step::Record { fields }),
        8 => (0..6_usize).prop_map(|fields| Step::Record { fields }),
        1 => (0..200_usize).prop_map(|at_most| Step::Drain { at_most }),
    ]
}

proptest! {
    #[test]
    fn klog_6_records_of_any_size_come_out_whole_and_in_order_and_each_missing_one_is_counted(
        steps in prop::collection::vec(step(), 1..400)
    ) {
        let area = area();
        let buffer = buffer(&area);
        let producer = Producer::new(buffer);
        let mut consumer = Consumer::new(buffer);
        let mut expected = VecDeque::new();
        let mut occurred = 0;
        for step in steps {
            match step {
                Step::Record { fields } => {
                    let fields: Vec<u64> = (0..fields as u64).map(|at| occurred << 16 | at).collect();
                    if producer.record(NUMBERED, &fields, || Ticks::new(occurred)) != Outcome::Lost {
                        expected.push_back((occurred, fields));
                    }
                    occurred += 1;
                }
                Step::Drain { at_most } => {
                    let mut left = at_most;
                    consumer.drain(|serial, record| {
                        if left == 0 {
                            return false;
                        }
                        left -= 1;
                        let (number, fields) = expected.pop_front().unwrap();
                        assert_eq!((serial, record[1], &record[2..]), (number, number, &fields[..]));
                        true
                    }).unwrap();
                }
            }
        }
        let kept = expected.len() as u64;
        let drained = consumer.drain(|serial, _| expected.pop_front().unwrap().0 == serial).unwrap();
        prop_assert_eq!(drained.records, kept);
        prop_assert_eq!(consumer.occurred(), occurred);
        prop_assert_eq!(buffer.used(), 0);
        // What is not in use is zero. Otherwise the reader could see records that were never committed.
        prop_assert!(area[HEADER_BYTES / 8..].iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn klog_6_any_content_of_a_buffer_is_handed_out_whole_or_called_garbled(
        garbage in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<u64>(), small_head()]), 1..64),
        reserve in prop_oneof![any::<u64>(), 0..10_000_u64, 0..1_u64 << 40],
        released in any::<u64>(),
    ) {
        let area = area();
        let buffer = buffer(&area);
        let mut consumer = Consumer::new(buffer);
        area[RESERVE_OFFSET / 8].store(reserve, Ordering::Relaxed);
        area[RELEASED_OFFSET / 8].store(released, Ordering::Relaxed);
        for (at, word) in &garbage {
            area[HEADER_BYTES / 8 + at.index(1024)].store(*word, Ordering::Relaxed);
        }
        let sound = |record: &[u64]| Head::from_word(record[0]).is_sound()
            && usize::from(Head::from_word(record[0]).bytes) == record.len() * 8;
        let result = consumer.drain(|_, record| { assert!(sound(record)); true });
        if result.is_err() {
            prop_assert_eq!(consumer.drain(|_, _| true).unwrap().records, 0);
        }
        let _ = Producer::new(buffer).record(NUMBERED, &[1, 2, 3], Ticks::default);
    }
}

/// Words that begin a record, and words that nearly do.
fn small_head() -> impl Strategy<Value = u64> {
    (0..20_u16, 0..80_u16, 0..4_u32)
        .prop_map(|(event, bytes, serial)| Head { event, bytes, serial }.to_word())
}

#[test]
fn klog_6_a_fast_producer_and_a_slow_reader_account_for_every_record() {
    const EVENTS: u64 = 400_000;
    let area = area();
    let buffer = buffer(&area);
    let done = AtomicBool::new(false);
    let (mut lost_by_gaps, mut taken) = (0, 0);
    let lost_by_producer = AtomicU64::new(0);
    let mut consumer = Consumer::new(buffer);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let producer = Producer::new(buffer);
            for number in 0..EVENTS {
                let fields = [number; 5];
                if producer.record(NUMBERED, &fields[..1 + number as usize % 5], || Ticks::new(number))
                    == Outcome::Lost
                {
                    lost_by_producer.fetch_add(1, Ordering::Relaxed);
                }
                // The reader must get a turn now and then, also on a machine with one processor.
                if number % 5000 == 0 {
                    std::thread::yield_now();
                }
            }
            done.store(true, Ordering::Release);
        });
        let mut expected = 0;
        loop {
            let was_done = done.load(Ordering::Acquire);
            let mut turn = 1000;
            let drained = consumer.drain(|serial, record| {
                lost_by_gaps += serial - expected;
                expected = serial + 1;
                assert!(record[1..].iter().all(|word| *word == serial), "{serial}: {record:?}");
                turn -= 1;
                turn > 0
            });
            taken += drained.unwrap().records;
            // The record that `sink` refused comes again.
            if turn == 0 {
                expected -= 1;
            }
            if was_done && buffer.used() == 0 {
                break;
            }
            std::thread::yield_now();
        }
        lost_by_gaps += EVENTS - expected;
    });
    assert_eq!(lost_by_gaps, lost_by_producer.load(Ordering::Relaxed));
    assert_eq!(taken + lost_by_gaps, EVENTS);
    assert!(taken > 0);
}

#[test]
fn klog_6_producers_that_interrupt_each_other_share_a_buffer_without_a_torn_record() {
    const EACH: u64 = 100_000;
    let area = area();
    let buffer = buffer(&area);
    let clock = AtomicU64::new(0);
    let mut consumer = Consumer::new(buffer);
    let (mut taken, mut last_time, mut next) = (0, 0, [0; 3]);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3_u64)
            .map(|who| {
                let clock = &clock;
                scope.spawn(move || {
                    let producer = Producer::new(buffer);
                    for number in 0..EACH {
                        let tick = || Ticks::new(clock.fetch_add(1, Ordering::Relaxed));
                        let _ = producer.record(NUMBERED, &[who, number, who ^ number], tick);
                    }
                })
            })
            .collect();
        loop {
            let finished = threads.iter().all(|thread| thread.is_finished());
            let drained = consumer.drain(|_, record| {
                let [who, number, check] = record[2..] else { panic!("{record:?}") };
                assert_eq!(check, who ^ number);
                assert!(number >= next[who as usize], "one producer's records are in its order");
                next[who as usize] = number + 1;
                assert!(record[1] >= last_time, "time stamps are in the order of the serial numbers");
                last_time = record[1];
                true
            });
            taken += drained.unwrap().records;
            if finished && buffer.used() == 0 {
                break;
            }
        }
    });
    assert_eq!(consumer.occurred(), 3 * EACH, "each event has a serial number of its own");
    assert!(taken > 0 && taken <= 3 * EACH);
}

#[test]
fn klog_5_the_low_water_mark_is_reported_once_when_it_is_crossed() {
    let area = area();
    let buffer = buffer(&area);
    buffer.set_low_water(25);
    let producer = Producer::new(buffer);
    let outcomes: Vec<_> =
        (0..4096).map(|number| producer.record(NUMBERED, &[], || Ticks::new(number))).collect();
    let crossings: Vec<_> = (0..4096).filter(|at| outcomes[*at] == Outcome::WrittenAtMark).collect();
    assert_eq!(crossings, [3071]);
    assert_eq!(producer.record(NUMBERED, &[], Ticks::default), Outcome::Lost);
}

#[test]
fn klog_6_a_hole_stops_the_reader_until_it_is_given_up_and_then_shows_as_a_gap() {
    let area = area();
    let buffer = buffer(&area);
    let producer = Producer::new(buffer);
    let _ = producer.record(NUMBERED, &[0], Ticks::default);
    // A producer that is killed between reserving and writing leaves this.
    area[RESERVE_OFFSET / 8].fetch_add(1 << 32 | 3, Ordering::Relaxed);
    let _ = producer.record(NUMBERED, &[2], || Ticks::new(2));
    let mut consumer = Consumer::new(buffer);
    let drained = consumer.drain(|_, _| true).unwrap();
    assert_eq!((drained.records, drained.stalled), (1, true));
    assert!(consumer.drain(|_, _| true).unwrap().stalled);
    consumer.abandon();
    let _ = producer.record(NUMBERED, &[3], || Ticks::new(3));
    let mut serials = Vec::new();
    let _ = consumer
        .drain(|serial, _| {
            serials.push(serial);
            true
        })
        .unwrap();
    assert_eq!(serials, [3]);
}

#[test]
fn klog_6_an_event_that_is_too_large_is_lost_and_not_cut() {
    let area = area();
    let buffer = buffer(&area);
    let fields = vec![0; MAX_BYTES / 8 - 1];
    assert_eq!(Producer::new(buffer).record(NUMBERED, &fields, Ticks::default), Outcome::Lost);
    assert_eq!(Producer::new(buffer).record(NUMBERED, &fields[1..], Ticks::default), Outcome::Written);
    assert_eq!(Consumer::new(buffer).occurred(), 2);
}

#[test]
fn klog_6_a_serial_number_that_was_not_given_out_is_garbled() {
    let area = area();
    let buffer = buffer(&area);
    let _ = Producer::new(buffer).record(NUMBERED, &[], Ticks::default);
    area[HEADER_BYTES / 8].store(Head { event: 1, bytes: 16, serial: 9 }.to_word(), Ordering::Relaxed);
    let mut consumer = Consumer::new(buffer);
    let garbled = consumer.drain(|_, _| panic!("handed out")).unwrap_err();
    assert_eq!(garbled, Garbled::Serial { position: 0, serial: 9, expected: 0 });
    assert_eq!(consumer.drain(|_, _| true).unwrap().records, 0);
}
