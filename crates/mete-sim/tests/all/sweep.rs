//! A sweep's results are in the order of its combinations, and the same on any number of threads.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use mete_policy::by_name;
use mete_sim::sweep::Cell;
use mete_sim::{Sweep, SweepError};

fn sweep(policies: &[&str], varied: &[&str]) -> Sweep {
    let policies: Vec<_> =
        policies.iter().map(|&name| by_name(name).expect("it is in the catalog")).collect();
    let varied: Vec<_> = varied.iter().map(|text| text.parse().expect("a key and values")).collect();
    Sweep::new("mix", &["duration_ms=6000".parse().expect("key=value")], &varied, &policies, 5..8)
        .expect("a scenario")
}

fn run(sweep: &Sweep, threads: usize) -> Vec<Cell> {
    let threads = NonZeroUsize::new(threads).expect("some");
    sweep.run(threads, || ControlFlow::Continue(()), || ()).expect("it is not stopped").expect("it runs")
}

#[test]
fn the_same_cells_come_in_the_same_order_on_any_number_of_threads() {
    let sweep = sweep(&["vtrr", "rr"], &["host.switch_us=0,50"]);
    assert_eq!(sweep.runs(), 2 * 2 * 3);
    let alone = run(&sweep, 1);
    let place = |cell: &Cell| (cell.values[0].number(), cell.policy.clone());
    let order: Vec<_> = alone.iter().map(place).collect();
    let expected = [(0.0, "vtrr"), (0.0, "rr"), (50.0, "vtrr"), (50.0, "rr")];
    assert_eq!(order, expected.map(|(value, policy)| (Some(value), policy.to_owned())));
    assert!(alone.iter().all(|cell| cell.values.len() == 1 && cell.values[0].key() == "host.switch_us"));
    for cell in &alone {
        assert_eq!(cell.reports.iter().map(|report| report.seed).collect::<Vec<_>>(), [5, 6, 7]);
        assert!(cell.reports.iter().all(|report| report.policy == cell.policy));
    }
    assert_ne!(alone[0].reports, alone[2].reports, "the value is the scenario's");
    assert_eq!(alone, run(&sweep, 2));
    assert_eq!(alone, run(&sweep, 5));
}

#[test]
fn without_policies_and_values_it_is_the_scenario_from_several_seeds() {
    let cells = run(&sweep(&[], &[]), 2);
    assert_eq!(cells.len(), 1);
    assert_eq!((cells[0].policy.as_str(), cells[0].reports.len()), ("vtrr", 3));
}

#[test]
fn keys_that_do_not_exist_are_named() {
    let varied = ["host.swich_us=1,2".parse().expect("a key and values")];
    let Err(error) = Sweep::new("mix", &[], &varied, &[], 0..1) else { panic!("there is no such key") };
    assert!(error.to_string().contains("swich_us"), "{error}");
}

#[test]
fn a_sweep_that_is_stopped_has_no_cells() {
    let stopped = sweep(&[], &[]).run(NonZeroUsize::MIN, || ControlFlow::Break(()), || ());
    assert!(stopped.is_none());
}

#[test]
fn a_run_is_stopped_within_a_few_thousand_events_and_not_only_at_its_end() {
    // A run that is too long for any machine to end.
    let long = ["duration_ms=1e11".parse().expect("key=value")];
    let sweep = Sweep::new("mix", &long, &[], &[], 0..1).expect("a scenario");
    let asked = AtomicUsize::new(0);
    let go_on = || match asked.fetch_add(1, Ordering::Relaxed) {
        0..3 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let cells = sweep.run(NonZeroUsize::MIN, go_on, || ());
    assert!(cells.is_none());
    assert_eq!(asked.load(Ordering::Relaxed), 3 + 1 + 1, "in the run, and once after it");
}

#[test]
fn more_runs_than_can_be_kept_are_refused_before_any_is_prepared() {
    let varied = |times: usize| vec!["host.switch_us=0,1,2,3,4,5,6,7,8,9".parse().expect("values"); times];
    for (seeds, times) in [(0..u64::MAX, 0), (0..100_001, 0), (0..1, 40), (0..u64::MAX, 40)] {
        let Err(error) = Sweep::new("mix", &[], &varied(times), &[], seeds.clone()) else {
            panic!("{seeds:?} with {times} keys")
        };
        assert!(matches!(error, SweepError::TooMany { .. }), "{error}");
    }
    assert!(Sweep::new("mix", &[], &varied(1), &[], 0..10_000).is_ok());
}
