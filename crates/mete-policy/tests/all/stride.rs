//! Stride scheduling: its schedule, its pairwise bound, and what it keeps over absences.

use crate::ideal::{Bench, EPSILON, setup};
use mete_policy::{Stop, Stride};
use proptest::prelude::*;

/// Strides 2, 3 and 6 of Waldspurger and Weihl (1995, §2): tickets 3, 2, 1.
#[test]
fn vtrr_3_stride_runs_three_tickets_two_and_one_in_turn() {
    let mut bench = Bench::new(Stride::new(&setup(3)), &[3, 2, 1]);
    for _ in 0..4 {
        assert_eq!(bench.quanta(6), [0, 1, 0, 0, 1, 2]);
    }
}

/// `remain` (§2, dynamic client participation): a lead stays a lead, and a lag comes back without having
/// grown.
#[test]
fn vtrr_3_stride_keeps_the_distance_to_the_global_pass_over_an_absence() {
    let mut bench = Bench::new(Stride::new(&setup(3)), &[1, 1, 1]);
    assert_eq!(bench.run(255, Stop::Blocked), Some(0), "it is two thirds of a quantum ahead");
    assert_eq!(bench.quanta(100), [1, 2].repeat(50));
    bench.wake(0);
    assert_eq!(bench.quanta(6), [1, 2, 0, 1, 2, 0]);

    let mut bench = Bench::new(Stride::new(&setup(2)), &[10, 1]);
    assert_eq!(bench.quanta(10), [0; 10]);
    assert_eq!(bench.run(0, Stop::Blocked), Some(1), "it is nine tenths of a quantum behind");
    assert_eq!(bench.quanta(100), [0; 100]);
    bench.wake(1);
    assert_eq!(bench.quanta(11), [&[1][..], &[0; 10]].concat(), "it goes first, and only once");
}

/// The client is five quanta ahead when it blocks: the others first have their turn. With twice the share it
/// is the same five quanta ahead, half as far in virtual time.
#[test]
fn vtrr_3_stride_scales_the_remain_with_the_share() {
    let mut shares = [1; 11];
    shares[0] = 10;
    for (share, before_the_others) in [(10, 0), (20, 5)] {
        let mut bench = Bench::new(Stride::new(&setup(11)), &shares);
        assert_eq!(bench.quanta(9), [0; 9]);
        assert_eq!(bench.run(255, Stop::Blocked), Some(0));
        assert_eq!(bench.quanta(10), (1..=10).collect::<Vec<_>>());
        bench.set_share(0, share);
        bench.wake(0);
        let order = bench.quanta(20);
        let first = order.iter().take_while(|&&client| client == 0).count();
        assert_eq!(first, before_the_others, "{order:?}");
    }
}

/// §2, dynamic ticket modifications: the part of a stride that is left is scaled with the stride.
#[test]
fn vtrr_3_a_share_that_changes_counts_from_now_on() {
    for blocked in [false, true] {
        let mut bench = Bench::new(Stride::new(&setup(2)), &[1, 1]);
        assert_eq!(bench.quanta(10), [0, 1].repeat(5));
        if blocked {
            assert_eq!(bench.run(255, Stop::Blocked), Some(0));
        }
        bench.set_share(0, 3);
        if blocked {
            bench.wake(0);
        }
        let after = bench.quanta(400);
        let of_it = after.iter().filter(|&&client| client == 0).count();
        assert!((299..=301).contains(&of_it), "{of_it} of 400");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Run(u8, bool),
    Wake(u32),
    Remove(u32),
    Share(u32, u32),
}

fn step() -> impl Strategy<Value = Step> {
    let other = 2u32..10;
    prop_oneof![
        8 => (prop_oneof![Just(255), any::<u8>()], any::<bool>()).prop_map(|(used, block)| Step::Run(used, block)),
        2 => other.clone().prop_map(Step::Wake),
        1 => other.clone().prop_map(Step::Remove),
        1 => (other, 1u32..=100).prop_map(|(client, share)| Step::Share(client, share)),
    ]
}

/// The clients 0 and 1 stay ready; the others do anything.
fn take(bench: &mut Bench<Stride>, step: &Step) {
    match *step {
        Step::Run(used, block) => {
            let stop = |client, _| if block && client > 1 { Stop::Blocked } else { Stop::Preempted };
            bench.run_and_stop(used, stop);
        }
        Step::Wake(client) if !bench.is_runnable(client) => bench.wake(client),
        Step::Wake(_) => {}
        Step::Remove(client) => {
            let share = bench.share_of(client);
            bench.remove(client);
            bench.add(client, share);
        }
        Step::Share(client, share) => bench.set_share(client, share),
    }
}

/// What the first of two clients had beyond its part of what both had.
fn pairwise(bench: &Bench<Stride>, one: u32, other: u32) -> f64 {
    let (mine, theirs) = (f64::from(bench.share_of(one)), f64::from(bench.share_of(other)));
    bench.got(one) - (bench.got(one) + bench.got(other)) * mine / (mine + theirs)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn vtrr_3_stride_errs_by_less_than_a_quantum_between_any_two(
        shares in prop::collection::vec(1u32..=1000, 2..20),
    ) {
        let mut bench = Bench::new(Stride::new(&setup(20)), &shares);
        for _ in 0..400 {
            bench.run(255, Stop::Expired);
            for one in 0..shares.len() as u32 {
                for other in 0..one {
                    let error = pairwise(&bench, one, other);
                    prop_assert!(error.abs() < 1.0, "{one} against {other}: {error}");
                }
            }
        }
    }

    #[test]
    fn vtrr_3_stride_keeps_a_pairs_bound_whatever_the_others_do(
        shares in prop::collection::vec(1u32..=100, 10),
        history in prop::collection::vec(step(), 1..500),
    ) {
        let mut bench = Bench::new(Stride::new(&setup(10)), &shares);
        for step in &history {
            take(&mut bench, step);
            let error = pairwise(&bench, 0, 1);
            prop_assert!(error.abs() < 1.0 + EPSILON, "{error} after {step:?}");
        }
    }
}
