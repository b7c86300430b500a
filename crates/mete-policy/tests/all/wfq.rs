//! Weighted fair queueing: its schedule, its bound, and that heap and linear search are one policy.

use crate::common;
use crate::common::World;
use crate::ideal::{Bench, EPSILON, setup};
use mete_policy::{Stop, Wfq, WfqLinear};
use proptest::prelude::*;

/// VTRR paper, §2.3: clients of shares 3, 2, 1.
#[test]
fn vtrr_3_wfq_runs_the_papers_example_in_its_order() {
    let mut bench = Bench::new(Wfq::new(&setup(3)), &[3, 2, 1]);
    let (mut least, mut most) = (0.0f64, 0.0f64);
    for cycle in 0..4 {
        for expected in [0, 1, 0, 0, 1, 2] {
            assert_eq!(bench.run(255, Stop::Expired), Some(expected), "cycle {cycle}");
            let (behind, ahead) = bench.errors();
            (least, most) = (least.min(behind), most.max(ahead));
        }
    }
    assert!((least + 5.0 / 6.0).abs() < EPSILON && (most - 1.0).abs() < EPSILON, "{least} to {most}");
}

/// Three thirds of a quantum are one quantum, although a third of its units is no whole number.
#[test]
fn vtrr_3_equal_finishing_times_are_equal_whatever_divisions_leave_over() {
    let mut bench = Bench::new(Wfq::new(&setup(2)), &[1, 3]);
    assert_eq!(bench.quanta(8), [1, 1, 0, 1, 1, 1, 0, 1], "at the tie the smaller number goes first");
}

/// The example by which Bennett and Zhang (WF²Q, 1996) show how far WFQ runs ahead.
#[test]
fn vtrr_3_wfq_runs_a_large_share_ahead_of_many_small_ones() {
    let mut shares = [1; 11];
    shares[0] = 10;
    let mut bench = Bench::new(Wfq::new(&setup(11)), &shares);
    assert_eq!(bench.quanta(10), [0; 10]);
    assert_eq!(bench.quanta(10), (1..=10).collect::<Vec<_>>());
}

#[test]
fn vtrr_3_a_sleeper_saves_nothing_up_and_a_client_that_was_ahead_stays_ahead() {
    let mut bench = Bench::new(Wfq::new(&setup(2)), &[1, 1]);
    assert_eq!(bench.run(255, Stop::Blocked), Some(0));
    assert_eq!(bench.quanta(100), [1; 100]);
    bench.wake(0);
    let after = bench.quanta(10);
    let of_the_sleeper = after.iter().filter(|&&client| client == 0).count();
    assert_eq!(of_the_sleeper, 5, "{after:?}");

    let mut bench = Bench::new(Wfq::new(&setup(2)), &[1, 1]);
    assert_eq!(bench.run(255, Stop::Blocked), Some(0));
    bench.wake(0);
    assert_eq!(bench.quanta(3), [1, 0, 1], "blocking at once does not bring another turn");
}

/// A step of a history in which no client leaves that is ahead: the assumption of the bound.
#[derive(Clone, Debug)]
enum Step {
    Arrive(u32),
    /// The next one runs for a part of its slice, and blocks if it may.
    Run(u8, bool),
    Leave(u32),
    Less(u32),
}

const CLIENTS: u32 = 12;

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    prop_oneof![
        3 => client.clone().prop_map(Step::Arrive),
        8 => (prop_oneof![Just(255), any::<u8>()], any::<bool>()).prop_map(|(used, block)| Step::Run(used, block)),
        1 => client.clone().prop_map(Step::Leave),
        1 => client.prop_map(Step::Less),
    ]
}

fn take(bench: &mut Bench<Wfq>, step: &Step) {
    let not_ahead = |bench: &Bench<Wfq>, client| bench.is_runnable(client) && bench.error(client) < -EPSILON;
    match *step {
        Step::Arrive(client) if !bench.is_runnable(client) => bench.wake(client),
        Step::Run(used, block) => {
            let stop =
                |_, error: f64| if block && error < -EPSILON { Stop::Blocked } else { Stop::Preempted };
            bench.run_and_stop(used, stop);
        }
        Step::Leave(client) if not_ahead(bench, client) => {
            let share = bench.share_of(client);
            bench.remove(client);
            bench.add(client, share);
        }
        Step::Less(client) if not_ahead(bench, client) => {
            bench.set_share(client, bench.share_of(client).div_ceil(2));
        }
        _ => {}
    }
}

/// One step in which any client leaves, comes back, changes its share, or runs.
fn churn(bench: &mut Bench<impl common::plain::Policy>, what: u8, client: u32, used: u8) -> Option<u32> {
    match what {
        0 if bench.is_runnable(client) => bench.remove(client),
        0 => {
            bench.add(client, 1 + client % 7);
            bench.wake(client);
        }
        1 if bench.is_runnable(client) => bench.set_share(client, 1 + u32::from(used) % 9),
        _ => return bench.run(used, Stop::Preempted),
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn vtrr_3_heap_and_linear_search_give_the_same_schedule(history in common::steps(400)) {
        let mut heap = World::new(Wfq::new(&common::setup()));
        let mut linear = World::new(WfqLinear::new(&common::setup()));
        for step in &history {
            heap.take(step);
            linear.take(step);
        }
        prop_assert_eq!(heap.answers, linear.answers);
    }

    /// Parekh and Gallager's bound for packets of one length, at every decision.
    #[test]
    fn vtrr_3_wfq_is_never_a_quantum_behind_the_ideal(shares in prop::collection::vec(1u32..=1000, 1..60)) {
        let mut bench = Bench::new(Wfq::new(&setup(60)), &shares);
        for _ in 0..600 {
            bench.run(255, Stop::Expired);
            let (behind, _) = bench.errors();
            prop_assert!(behind > -1.0, "{} quanta behind", -behind);
        }
    }

    #[test]
    fn vtrr_3_wfq_keeps_its_bound_while_no_client_leaves_that_is_ahead(
        shares in prop::collection::vec(1u32..=100, CLIENTS as usize),
        history in prop::collection::vec(step(), 1..500),
    ) {
        let mut bench = Bench::new(Wfq::new(&setup(CLIENTS)), &[]);
        for (client, &share) in (0..).zip(&shares) {
            bench.add(client, share);
        }
        for step in &history {
            take(&mut bench, step);
            let (behind, _) = bench.errors();
            prop_assert!(behind > -1.0 - EPSILON, "{} quanta behind after {:?}", -behind, step);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Enough clients for a heap of five levels, from which any client may be taken.
    #[test]
    fn vtrr_3_heap_and_linear_search_agree_on_many_clients(
        shares in prop::collection::vec(1u32..=20, 300),
        history in prop::collection::vec((0u8..4, 0u32..300, any::<u8>()), 1..1000),
    ) {
        let mut heap = Bench::new(Wfq::new(&setup(300)), &shares);
        let mut linear = Bench::new(WfqLinear::new(&setup(300)), &shares);
        for (what, client, used) in history {
            let chosen = (churn(&mut heap, what, client, used), churn(&mut linear, what, client, used));
            prop_assert_eq!(chosen.0, chosen.1);
        }
    }
}
