//! The benchmark as a whole: it stops on request, and in every case nothing stays switched on. No test checks
//! a measured time.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod common;

use common::{StopAfter, all_are_said, alone, traces};
use mete_bench::{Options, bench};
use mete_measure::Reason;

fn options(only: &str) -> Options {
    Options { only: Some(only.into()), is_quick: true, ..Options::default() }
}

#[test]
fn log_17_a_bench_that_is_stopped_at_any_step_leaves_nothing_switched_on() {
    let _alone = alone();
    let before = traces();
    for group in mete_bench::groups().filter(|group| *group != "polling") {
        for steps in [1, 3, 9, 12] {
            let report = bench(&options(group), &mut StopAfter(steps));
            assert_eq!(traces(), before, "{group} after {steps} steps");
            // With more steps it would do the same.
            if report.is_complete {
                break;
            }
        }
    }
}

#[test]
fn log_17_a_run_that_is_stopped_says_so() {
    let _alone = alone();
    assert!(!bench(&options("user"), &mut StopAfter(1)).is_complete);
}

#[test]
fn log_17_user_rows_have_values_or_reasons() {
    let _alone = alone();
    let report = bench(&options("user"), &mut ());
    assert!(report.is_complete);
    all_are_said(&report);
    let own =
        report.rows.iter().filter(|row| row.name.starts_with("user: row") || row.name.contains("disabled"));
    for row in own.inspect(|row| println!("{}: {:?} {}", row.name, row.median, row.note)) {
        assert!(row.median.is_some(), "our own rows need nothing that may be missing: {row:?}");
    }
}

#[test]
fn log_10_the_reader_passes_once_and_every_row_is_accounted_for() {
    let _alone = alone();
    let report = bench(&options("reader"), &mut ());
    all_are_said(&report);
    let row = report.rows.iter().find(|row| row.name.contains("passes")).unwrap();
    match row.median {
        Some(_) => assert_eq!((row.max, row.holds), (Some(1.0), Some(true)), "{}", row.note),
        None => println!("SKIPPED: {}", row.note),
    }
}

#[test]
fn log_17_the_scheduler_that_the_caller_makes_is_the_one_that_is_measured() {
    let _alone = alone();
    let turns = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = turns.clone();
    let make = move || {
        let count = count.clone();
        let turn = move || {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok::<(), Reason>(())
        };
        Ok::<mete_bench::Turn, Reason>(Box::new(turn))
    };
    let options = Options { scheduler: Some(Box::new(make)), ..options("polling") };
    let report = bench(&options, &mut StopAfter(2));
    assert_eq!(turns.load(std::sync::atomic::Ordering::Relaxed), 20, "two samples of ten turns");
    assert!(report.rows[0].median.is_some());
}
