//! The papers' reader inside the study (thesis §4.5.2) must be right. Otherwise the comparison with it is
//! worth nothing.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::sync::atomic::{AtomicBool, Ordering};

use mete_log::handler::{self, Clock};
use mete_log::{
    Control, DomainId, Entries, EventId, FileId, FileSpec, Outcome, Plan, Record, Region, Shape, Stamp,
};
use mete_study::Restart;

const ROWS: u64 = 64;
const EVENT: EventId = EventId::new(0);

/// A clock on which every reading is later than the one before, like the thesis' virtual time stamp.
struct Counter(std::sync::atomic::AtomicU64);

impl Clock for Counter {
    fn hardware(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
    fn tick(&self) -> u64 {
        0
    }
}

struct Log {
    region: Region,
    file: FileId,
    control: Control,
    clock: Counter,
}

impl Log {
    fn new() -> Log {
        let region = Region::create(Shape::COMPONENT, 1).unwrap();
        let mut plan = Plan::new(Shape::COMPONENT);
        let spec =
            FileSpec { entries: Entries::COUNTER, stamp: Stamp::Hardware, add: false, rows: ROWS as u32 };
        let file = plan.file(spec).unwrap();
        plan.route_event(EVENT, file).unwrap();
        plan.apply(region.area(0));
        Log { region, file, control: plan.control(file), clock: Counter(0.into()) }
    }

    fn write(&self, counter: u64) -> Outcome {
        let record =
            Record { event: EVENT, domain: DomainId::new(1), correspondent: DomainId::new(2), counter };
        handler::log(self.region.area(0), &self.clock, record)
    }

    fn put(&self, counter: u64) {
        assert_ne!(self.write(counter), Outcome::Internal);
    }

    fn reader(&self, clears: bool) -> Restart<'_> {
        Restart::new(self.region.area(0), self.file, self.control, clears)
    }
}

#[test]
fn an_undisturbed_reader_needs_one_trial_and_hands_out_each_row_once() {
    let log = Log::new();
    for clears in [false, true] {
        let mut reader = log.reader(clears);
        (0..10).for_each(|counter| log.put(counter));
        let mut seen = Vec::new();
        let analysis = reader.analyse(9, || seen.clear(), |_| ());
        assert_eq!((analysis.trials, analysis.is_complete), (1, true));
        let again = reader.analyse(9, || (), |words| seen.push(words[0]));
        assert_eq!((again.rows, seen.len()), (0, 0), "nothing is new");
        (10..15).for_each(|counter| log.put(counter));
        let new = reader.analyse(9, || (), |words| seen.push(words[0]));
        assert_eq!((new.rows, seen.as_slice()), (5, &[10, 11, 12, 13, 14][..]));
    }
}

#[test]
fn a_full_file_is_read_but_for_the_row_that_may_be_being_written() {
    let log = Log::new();
    (0..ROWS + 7).for_each(|counter| log.put(counter));
    let mut seen = Vec::new();
    let analysis = log.reader(false).analyse(1, || (), |words| seen.push(words[0]));
    assert_eq!(analysis.rows, ROWS - 1);
    assert_eq!(seen, (8..ROWS + 7).collect::<Vec<_>>());
}

#[test]
fn a_disturbed_reader_begins_again_and_gives_up_at_its_limit() {
    let log = Log::new();
    (0..ROWS).for_each(|counter| log.put(counter));
    let mut next = ROWS;
    let disturb = |_: &[u64]| {
        log.put(next);
        next += 1;
    };
    let analysis = log.reader(false).analyse(5, || (), disturb);
    assert_eq!((analysis.trials, analysis.is_complete, analysis.rows), (5, false, 0));
}

#[test]
fn clearing_the_flags_stops_the_writer_for_the_second_trial_and_no_longer() {
    let log = Log::new();
    (0..ROWS).for_each(|counter| log.put(counter));
    let (mut logged, mut refused) = (0, 0);
    let disturb = |_: &[u64]| match log.write(1) {
        Outcome::Logged => logged += 1,
        _ => refused += 1,
    };
    let analysis = log.reader(true).analyse(9, || (), disturb);
    assert_eq!((analysis.trials, analysis.is_complete), (2, true));
    assert!(logged > 0 && refused > 0, "{logged} logged, {refused} refused");
    assert_eq!(log.region.area(0).register(log.file).control(), log.control, "the flags are set again");
    assert_eq!(log.write(2), Outcome::Logged);
}

#[test]
fn exactly_one_lap_between_the_checks_is_noticed_by_the_stamp() {
    let log = Log::new();
    (0..ROWS).for_each(|counter| log.put(counter));
    let mut is_first = true;
    let lap = |_: &[u64]| {
        if std::mem::take(&mut is_first) {
            (0..ROWS).for_each(|counter| log.put(counter));
        }
    };
    let analysis = log.reader(false).analyse(9, || (), lap);
    assert_eq!((analysis.trials, analysis.is_complete), (2, true));
}

#[test]
fn what_a_successful_trial_hands_out_is_whole_and_in_order_while_a_thread_writes() {
    let log = Log::new();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for counter in 0.. {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                log.put(counter);
            }
        });
        let mut reader = log.reader(true);
        for _ in 0..200 {
            let mut seen = Vec::new();
            let seen_now = std::cell::RefCell::new(&mut seen);
            let begin = || seen_now.borrow_mut().clear();
            let analysis = reader.analyse(100, begin, |words| seen_now.borrow_mut().push(words[0]));
            if analysis.is_complete {
                assert_eq!(seen.len() as u64, analysis.rows);
                assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
}
