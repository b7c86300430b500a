//! Tests for Miri: the buffer's two sides at once, without data races or stray references
//! (KLOG-5, KLOG-6). Run by `cargo +nightly miri test -p mete-trace --test miri`.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![cfg(not(loom))]

mod common;

use common::{NUMBERED, area, buffer};
use mete_trace::{Consumer, Outcome, Producer, Ticks};

#[test]
fn klog_6_producers_and_the_flush_thread_share_a_buffer_by_atomics_alone() {
    const EACH: u64 = 60;
    let area = area();
    let buffer = buffer(&area);
    let mut consumer = Consumer::new(buffer);
    let mut taken = 0;
    std::thread::scope(|scope| {
        let produce = || {
            let producer = Producer::new(buffer);
            (0..EACH)
                .filter(|number| producer.record(NUMBERED, &[*number; 3], Ticks::default) == Outcome::Lost)
                .count()
        };
        let threads = [scope.spawn(produce), scope.spawn(produce)];
        loop {
            let finished = threads.iter().all(|thread| thread.is_finished());
            let drained = consumer.drain(|_, record| {
                assert!(record[2] == record[3] && record[3] == record[4], "{record:?}");
                true
            });
            taken += drained.unwrap().records;
            if finished && buffer.used() == 0 {
                break;
            }
        }
        assert_eq!(threads.map(|thread| thread.join().unwrap()), [0, 0]);
    });
    assert_eq!((taken, consumer.occurred()), (2 * EACH, 2 * EACH));
}

#[test]
fn klog_5_a_buffer_is_filled_wrapped_and_given_up_within_its_bounds() {
    let area = area();
    let buffer = buffer(&area);
    let producer = Producer::new(buffer);
    let mut consumer = Consumer::new(buffer);
    let large = [1; 500];
    let mut lost = 0;
    for round in 0..3 {
        lost += (0..20)
            .filter(|_| producer.record(NUMBERED, &large, || Ticks::new(round)) == Outcome::Lost)
            .count();
        let _ = consumer.drain(|_, record| record.len() == 502).unwrap();
    }
    assert_eq!(lost, 3 * 4);
    let _ = producer.record(NUMBERED, &large, Ticks::default);
    consumer.abandon();
    assert_eq!((buffer.used(), consumer.occurred()), (0, 61));
}
