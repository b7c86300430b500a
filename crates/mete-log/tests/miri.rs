//! What Miri checks: there is no undefined behaviour and no data race between the handler and the reader,
//! over ordinary memory, with the weak memory ordering that Miri emulates. The tests are small enough for an
//! interpreter; they run natively as well.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::thread;

use mete_log::handler::{Clock, enter, exit, log};
use mete_log::{
    Area, Control, Cursor, DomainId, Entries, EventId, FileId, FileSpec, Outcome, Plan, Poll, Record, Shape,
    Stamp,
};

struct NoClock;

impl Clock for NoClock {
    fn hardware(&self) -> u64 {
        0
    }

    fn tick(&self) -> u64 {
        0
    }
}

/// A cache line, for the alignment that areas need.
#[repr(align(64))]
#[derive(Default)]
struct Line(#[allow(dead_code, reason = "reached by address")] [AtomicU64; 8]);

const ROWS: u32 = 4;

fn shape() -> Shape {
    Shape::new(1, 1, 1, 12).unwrap()
}

fn memory() -> Vec<Line> {
    (0..shape().area_bytes() / size_of::<Line>()).map(|_| Line::default()).collect()
}

fn area(memory: &[Line]) -> Area<'_> {
    let base = NonNull::new(memory.as_ptr().cast_mut().cast()).unwrap();
    // SAFETY: `memory` holds `area_bytes` bytes, aligned to 64, as atomics, for the area's lifetime.
    unsafe { Area::new(base, shape()) }
}

const EVENT: EventId = EventId::new(0);
const DOMAIN: DomainId = DomainId::new(1);

/// Routes every occurrence of one event of one domain to one file of [`ROWS`] rows.
fn configure(area: Area<'_>, threshold: u32) -> (FileId, Control) {
    let mut plan = Plan::new(shape());
    let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::Virtual, add: false, rows: ROWS };
    let file = plan.file(spec).unwrap();
    plan.route(EVENT, DOMAIN, file).unwrap();
    plan.threshold(EVENT, DOMAIN, threshold).unwrap();
    area.initialise(0);
    plan.apply(area);
    (file, plan.control(file))
}

/// The counter and the correspondent have the same number, so that a torn row shows.
fn numbered(number: u16) -> Record {
    Record {
        event: EVENT,
        domain: DOMAIN,
        correspondent: DomainId::new(number + 2),
        counter: u64::from(number),
    }
}

#[test]
fn log_10_a_reader_beside_a_writer_gets_whole_rows_and_counts_the_rest() {
    const WRITTEN: u16 = 40;
    let memory = memory();
    let area = area(&memory);
    let (file, control) = configure(area, 1);
    let mut reader = Cursor::new(area, file, control);
    let mut total = Poll::default();
    let mut pass = |reader: &mut Cursor| {
        total += reader
            .poll(area, |row| {
                assert_eq!(row.counter, row.correspondent.map(|domain| u64::from(domain.get()) - 2))
            })
            .unwrap();
    };
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (0..WRITTEN)
                .for_each(|number| assert_eq!(log(area, &NoClock, numbered(number)), Outcome::Logged));
        });
        while !writer.is_finished() {
            pass(&mut reader);
            thread::yield_now();
        }
    });
    pass(&mut reader);
    assert_eq!(total.rows + total.overwritten, u64::from(WRITTEN));
    assert!(total.rows >= u64::from(ROWS) - 1);
    assert_eq!(total.refused, 0);
}

#[test]
fn log_10_writers_that_meet_lose_no_row_uncounted() {
    const EACH: u16 = 20;
    let memory = memory();
    let area = area(&memory);
    let (file, control) = configure(area, 1);
    let mut reader = Cursor::new(area, file, control);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                (0..EACH).for_each(|number| {
                    log(area, &NoClock, numbered(number));
                })
            });
        }
    });
    let poll = reader.poll(area, |_| ()).unwrap();
    assert_eq!(poll.rows + poll.overwritten + poll.refused, 2 * u64::from(EACH));
}

#[test]
fn log_8_phases_reach_their_threshold() {
    let memory = memory();
    let area = area(&memory);
    let (file, control) = configure(area, 3);
    let mut reader = Cursor::new(area, file, control);
    for phase in 0..6 {
        if enter(area, DOMAIN, EVENT) {
            assert_eq!(exit(area, &NoClock, numbered(phase)), Outcome::Logged);
        }
    }
    let mut counters = Vec::new();
    assert_eq!(reader.poll(area, |row| counters.push(row.counter)).unwrap().rows, 2);
    assert_eq!(counters, [Some(2), Some(5)]);
}
