//! The handler's promises, row by row (LOG-4 to LOG-8).
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use std::sync::Barrier;

use common::{STAMPS, SetClock, all_entries, global_log, record};
use mete_log::area::Register;
use mete_log::handler::{Clock, enter, exit, log};
use mete_log::plan::{freeze, thaw};
use mete_log::{
    Control, Cursor, DomainId, Entries, EventId, FileSpec, NO_DOMAIN, Outcome, Plan, PlanError, Poll,
    ReadError, Region, Row, Shape, Stamp,
};

#[test]
fn log_4_every_combination_of_entries_and_stamps_reads_back_as_written() {
    for entries in all_entries() {
        for stamp in STAMPS {
            let (region, file, control) = global_log(entries, stamp, false, 8);
            let area = region.area(0);
            let mut reader = Cursor::new(area, file, control);
            let clock = SetClock::default();
            clock.0.set(9000);
            assert_eq!(log(area, &clock, record(3, 5, 6, 77)), Outcome::Logged);

            let mut rows = Vec::new();
            let poll = reader.poll(area, |row| rows.push(row)).unwrap();
            assert_eq!((poll.rows, poll.overwritten, poll.refused), (1, 0, 0));
            let stamp_value = match stamp {
                Stamp::None => None,
                Stamp::Hardware => Some(9000),
                Stamp::Tick => Some(9),
                Stamp::Virtual => Some(0),
                Stamp::RunQueue => Some(4500),
            };
            let expected = Row {
                event: entries.has(Entries::EVENT).then_some(EventId::new(3)),
                domain: entries.has(Entries::DOMAIN).then_some(DomainId::new(5)),
                correspondent: entries.has(Entries::CORRESPONDENT).then_some(DomainId::new(6)),
                counter: entries.has(Entries::COUNTER).then_some(77),
                stamp: stamp_value,
            };
            let is_empty = control.entry_words() == 0;
            assert_eq!(rows, if is_empty { vec![] } else { vec![expected] }, "{entries:?} {stamp:?}");
        }
    }
}

#[test]
fn log_4_rows_are_padded_to_a_power_of_two_and_files_do_not_overlap() {
    let mut plan = Plan::new(Shape::COMPONENT);
    let mut end = 0;
    for entries in all_entries() {
        for stamp in STAMPS {
            let file = plan.file(FileSpec { entries, stamp, add: false, rows: 4 }).unwrap();
            let control = plan.control(file);
            assert!([8, 16, 32].contains(&control.row_bytes()));
            assert!(control.row_bytes() >= u64::from(control.entry_words()) * 8);
            if control.entry_words() > 0 {
                assert!(control.offset() >= end, "file {file} begins inside the one before");
                end = control.offset() + control.ring_bytes();
            }
        }
    }
    assert!(end <= Shape::COMPONENT.data_bytes() as u64);
}

#[test]
fn log_4_virtual_stamps_order_rows_across_files() {
    let shape = Shape::new(4, 4, 4, 16).unwrap();
    let region = Region::create(shape, 1).unwrap();
    let mut plan = Plan::new(shape);
    let spec = FileSpec { entries: Entries::COUNTER, stamp: Stamp::Virtual, add: false, rows: 16 };
    let files = [plan.file(spec).unwrap(), plan.file(spec).unwrap()];
    for (event, file) in files.into_iter().enumerate() {
        plan.route_event(EventId::from_index(event), file).unwrap();
    }
    let area = region.area(0);
    plan.apply(area);
    for number in 0..10 {
        log(area, &SetClock::default(), record((number % 2) as u16, 1, 2, number));
    }
    let mut rows = Vec::new();
    for file in files {
        let poll = Cursor::from_oldest(area, file, plan.control(file))
            .poll(area, |row| rows.push((row.stamp, row.counter)));
        assert_eq!(poll.unwrap().rows, 5);
    }
    rows.sort();
    let expected: Vec<_> = (0..10).map(|number| (Some(number), Some(number))).collect();
    assert_eq!(rows, expected);
}

#[test]
fn log_5_a_changed_control_word_holds_from_the_next_row_on() {
    let (region, file, control) = global_log(Entries::ALL, Stamp::None, false, 8);
    let area = region.area(0);
    let clock = SetClock::default();
    assert_eq!(log(area, &clock, record(0, 1, 2, 3)), Outcome::Logged);
    area.register(file).set_control(mete_log::Control::OFF);
    assert_eq!(log(area, &clock, record(0, 1, 2, 3)), Outcome::Off);
    area.register(file).set_control(control);
    assert_eq!(log(area, &clock, record(0, 1, 2, 3)), Outcome::Logged);
    assert_eq!(area.register(file).index.load(std::sync::atomic::Ordering::Relaxed), 2);
}

#[test]
fn log_7_each_pair_goes_to_the_file_that_its_selector_names() {
    let shape = Shape::new(6, 4, 4, 16).unwrap();
    let region = Region::create(shape, 1).unwrap();
    let mut plan = Plan::new(shape);
    let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::None, add: false, rows: 64 };
    let [global, per_event, per_domain, per_pair, cluster] =
        std::array::from_fn(|_| plan.file(spec).unwrap());
    EventId::all_below(shape.events()).for_each(|event| plan.route_event(event, global).unwrap());
    plan.route_event(EventId::new(2), per_event).unwrap();
    for (domain, file) in [(3, per_domain), (5, cluster), (6, cluster)] {
        let domain = DomainId::new(domain);
        EventId::all_below(shape.events()).for_each(|event| plan.route(event, domain, file).unwrap());
    }
    plan.route(EventId::new(7), DomainId::new(7), per_pair).unwrap();
    let area = region.area(0);
    plan.apply(area);

    let cases = [
        (0, 1, global),
        (2, 1, per_event),
        (2, 3, per_domain),
        (9, 5, cluster),
        (2, 6, cluster),
        (7, 7, per_pair),
    ];
    for (event, domain, file) in cases {
        let mut reader = Cursor::new(area, file, plan.control(file));
        assert_eq!(
            log(area, &SetClock::default(), record(event, domain, NO_DOMAIN.get(), 1)),
            Outcome::Logged
        );
        let mut rows = Vec::new();
        let poll = reader.poll(area, |row| rows.push((row.event, row.domain))).unwrap();
        assert_eq!((poll.rows, rows), (1, vec![(Some(EventId::new(event)), Some(DomainId::new(domain)))]));
    }
}

#[test]
fn log_7_a_pair_that_is_routed_nowhere_is_off() {
    let shape = Shape::new(4, 4, 4, 16).unwrap();
    let region = Region::create(shape, 1).unwrap();
    Plan::new(shape).apply(region.area(0));
    assert_eq!(log(region.area(0), &SetClock::default(), record(1, 1, 2, 1)), Outcome::Off);
}

#[test]
fn log_8_occurrences_inside_a_domain_are_dropped_unless_asked_for() {
    let (region, _, _) = global_log(Entries::ALL, Stamp::None, false, 8);
    let area = region.area(0);
    let clock = SetClock::default();
    assert_eq!(log(area, &clock, record(1, 4, 4, 1)), Outcome::Internal);
    assert_eq!(log(area, &clock, record(1, 4, 5, 1)), Outcome::Logged);
    assert_eq!(exit(area, &clock, record(1, 4, 4, 1)), Outcome::Internal);
    area.pair(DomainId::new(4), EventId::new(1))
        .flags
        .store(mete_log::layout::PAIR_KEEP_INTERNAL, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(log(area, &clock, record(1, 4, 4, 1)), Outcome::Logged);
}

#[test]
fn log_8_a_threshold_logs_every_nth_occurrence_of_its_own_pair() {
    let (region, file, control) = global_log(Entries::ALL, Stamp::None, false, 64);
    let area = region.area(0);
    area.pair(DomainId::new(2), EventId::new(1)).threshold.store(5, std::sync::atomic::Ordering::Relaxed);
    let mut reader = Cursor::new(area, file, control);
    for number in 1..=23 {
        log(area, &SetClock::default(), record(1, 2, 3, number));
        log(area, &SetClock::default(), record(1, 3, 4, 1000 + number));
    }
    let mut sampled = Vec::new();
    let mut others = 0;
    let poll = reader.poll(area, |row| match row.domain.map(DomainId::get) {
        Some(2) => sampled.push(row.counter.unwrap()),
        _ => others += 1,
    });
    assert_eq!(poll.unwrap().rows, 4 + 23);
    assert_eq!((sampled, others), (vec![5, 10, 15, 20], 23));
}

#[test]
fn log_8_a_threshold_is_counted_at_the_entry_and_logged_at_the_exit() {
    let (region, file, control) = global_log(Entries::COUNTER, Stamp::None, false, 64);
    let area = region.area(0);
    area.pair(DomainId::new(2), EventId::new(1)).threshold.store(3, std::sync::atomic::Ordering::Relaxed);
    let mut reader = Cursor::new(area, file, control);
    for phase in 1..=10 {
        if enter(area, DomainId::new(2), EventId::new(1)) {
            exit(area, &SetClock::default(), record(1, 2, NO_DOMAIN.get(), phase));
        }
    }
    let mut phases = Vec::new();
    let poll = reader.poll(area, |row| phases.push(row.counter.unwrap())).unwrap();
    assert_eq!((poll.rows, phases), (3, vec![3, 6, 9]));
}

#[test]
fn log_10_overwritten_rows_are_no_loss_if_the_newest_row_says_everything() {
    let (region, file, control) = global_log(Entries::ALL, Stamp::Hardware, true, 2);
    let area = region.area(0);
    let mut cursor = Cursor::new(area, file, control);
    assert_eq!(cursor.poll_newest(area), Ok((Poll::default(), None)));
    for amount in 1..=1000 {
        log(area, &SetClock::default(), record(1, 2, 3, amount));
    }
    let (poll, row) = cursor.poll_newest(area).unwrap();
    assert_eq!(poll, Poll { rows: 1000, overwritten: 0, refused: 0 });
    assert_eq!(row.unwrap().counter, Some(1000 * 1001 / 2));
    assert_eq!(cursor.poll_newest(area), Ok((Poll::default(), None)), "nothing is new");

    freeze(area, file);
    log(area, &SetClock::default(), record(1, 2, 3, 5));
    let refused = Poll { refused: 1, ..Poll::default() };
    assert_eq!(cursor.poll_newest(area), Ok((refused, None)), "what was refused is in no sum");

    area.register(file).index.store(7, std::sync::atomic::Ordering::Relaxed);
    let back = ReadError::IndexWentBack { file, before: 1000, now: 7 };
    assert_eq!(cursor.poll_newest(area), Err(back));
}

#[test]
fn log_8_counting_keeps_a_running_total_and_the_number_of_occurrences() {
    for entries in [Entries::COUNTER, Entries::ALL] {
        let (region, file, control) = global_log(entries, Stamp::Hardware, true, 2);
        let area = region.area(0);
        let start = Cursor::new(area, file, control);
        assert_eq!(start.newest(area), None);
        for amount in 1..=1000 {
            log(area, &SetClock::default(), record(1, 2, 3, amount));
        }
        assert_eq!(start.newest(area).unwrap().counter, Some(1000 * 1001 / 2));
        let mut reader = start;
        let poll = reader.poll_rows(area, |_| {}).unwrap();
        assert_eq!(poll.rows + poll.overwritten, 1000);
    }
}

#[test]
fn log_8_a_file_without_entries_counts_occurrences() {
    let (region, file, control) = global_log(Entries::NONE, Stamp::None, false, 2);
    let area = region.area(0);
    let mut reader = Cursor::new(area, file, control);
    for _ in 0..12_345 {
        log(area, &SetClock::default(), record(1, 2, 3, 4));
    }
    let poll = reader.poll(area, |_| panic!("there is no row to hand out")).unwrap();
    assert_eq!((poll.rows, poll.overwritten), (12_345, 0));
}

#[test]
fn log_10_a_frozen_file_refuses_and_counts_until_it_is_thawed() {
    let (region, file, control) = global_log(Entries::ALL, Stamp::None, false, 8);
    let area = region.area(0);
    let mut reader = Cursor::new(area, file, control);
    let clock = SetClock::default();
    log(area, &clock, record(0, 1, 2, 1));
    freeze(area, file);
    for _ in 0..3 {
        assert_eq!(log(area, &clock, record(0, 1, 2, 2)), Outcome::Refused);
    }
    thaw(area, file);
    log(area, &clock, record(0, 1, 2, 3));
    let mut counters = Vec::new();
    let poll = reader.poll(area, |row| counters.push(row.counter.unwrap())).unwrap();
    assert_eq!((poll.rows, poll.overwritten, poll.refused), (2, 0, 3));
    assert_eq!(counters, [1, 3]);
    assert_eq!(reader.poll(area, |_| {}).unwrap().refused, 0);
}

#[test]
fn log_5_applying_a_plan_anew_leaves_nothing_of_the_old_one() {
    let (region, _, _) = global_log(Entries::ALL, Stamp::Hardware, false, 8);
    let area = region.area(0);
    let mut plan = Plan::new(area.shape());
    let total =
        plan.file(FileSpec { entries: Entries::COUNTER, stamp: Stamp::None, add: true, rows: 2 }).unwrap();
    plan.route(EventId::new(1), DomainId::new(2), total).unwrap();
    log(area, &SetClock::default(), record(1, 2, 3, u64::MAX / 2));
    plan.apply(area);
    log(area, &SetClock::default(), record(1, 2, 3, 42));
    assert_eq!(log(area, &SetClock::default(), record(1, 3, 2, 42)), Outcome::Off);
    assert_eq!(Cursor::new(area, total, plan.control(total)).newest(area).unwrap().counter, Some(42));
}

/// A clock at which a producer stops in the middle of a row until a plan has changed its file.
struct StoppingClock<'a>(&'a Barrier, &'a Register);

impl Clock for StoppingClock<'_> {
    fn hardware(&self) -> u64 {
        let before = self.1.control();
        self.0.wait();
        while self.1.control() == before {
            std::thread::yield_now();
        }
        // Long enough for a plan that does not wait for the row.
        std::thread::sleep(std::time::Duration::from_millis(5));
        u64::MAX / 2
    }

    fn tick(&self) -> u64 {
        0
    }
}

#[test]
fn log_5_a_row_that_a_producer_has_begun_before_a_plan_is_applied_changes_no_total() {
    let (region, file, _) = global_log(Entries::COUNTER, Stamp::Hardware, false, 2);
    let area = region.area(0);
    let mut plan = Plan::new(area.shape());
    let spec = FileSpec { entries: Entries::COUNTER, stamp: Stamp::None, add: true, rows: 4 };
    let total = plan.file(spec).unwrap();
    plan.route_event(EventId::new(0), total).unwrap();
    assert_eq!(file, total, "the same register");
    let begun = Barrier::new(2);
    std::thread::scope(|scope| {
        let clock = StoppingClock(&begun, area.register(file));
        let producer = scope.spawn(move || log(area, &clock, record(0, 1, 2, u64::MAX / 2)));
        begun.wait();
        plan.apply(area);
        log(area, &SetClock::default(), record(0, 1, 2, 40));
        assert_eq!(producer.join().unwrap(), Outcome::Logged);
    });
    log(area, &SetClock::default(), record(0, 1, 2, 2));
    assert_eq!(Cursor::new(area, total, plan.control(total)).newest(area).unwrap().counter, Some(42));
}

#[test]
fn log_11_applying_a_plan_frees_files_that_were_left_busy() {
    let (region, file, _) = global_log(Entries::ALL, Stamp::None, false, 8);
    let area = region.area(0);
    area.register(file).busy.store(7, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(log(area, &SetClock::default(), record(0, 1, 2, 3)), Outcome::Refused);
    let mut plan = Plan::new(area.shape());
    let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::None, add: false, rows: 8 };
    let file = plan.file(spec).unwrap();
    plan.route_event(EventId::new(0), file).unwrap();
    plan.apply(area);
    assert_eq!(log(area, &SetClock::default(), record(0, 1, 2, 3)), Outcome::Logged);
}

#[test]
fn log_4_a_file_that_is_larger_than_a_control_word_can_say_is_refused() {
    let mut plan = Plan::new(Shape::new(2, 2, 2, 27).unwrap());
    let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::Hardware, add: false, rows: 1 << 31 };
    let wanted = 32 << 31;
    assert_eq!(plan.file(spec), Err(PlanError::Full { wanted, free: 1 << 27, total: 1 << 27 }));
    plan.file(FileSpec { rows: 1 << 22, ..spec }).unwrap();
}

#[test]
fn log_5_the_plain_bit_follows_from_the_other_flags() {
    use mete_log::control::PLAIN_BIT;
    for entries in all_entries() {
        for stamp in STAMPS {
            for add in [false, true] {
                let control = Control::new(entries, stamp, add, 3, 0);
                let is_plain = !add && [Stamp::None, Stamp::Hardware].contains(&stamp);
                assert_eq!(control.to_bits() & PLAIN_BIT != 0, is_plain);
                assert_eq!(control.with_frozen(true).to_bits() & PLAIN_BIT, 0);
                assert_eq!(control.with_frozen(true).with_frozen(false), control);
            }
        }
    }
    assert_eq!(Control::OFF.with_frozen(true).with_frozen(false), Control::OFF);
}
