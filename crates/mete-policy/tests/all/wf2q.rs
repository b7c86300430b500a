//! WF²Q+: its schedule, and its bound both ways.

use crate::ideal::{Bench, EPSILON, setup};
use mete_policy::{Stop, Wf2q};
use proptest::prelude::*;

/// The example of Bennett and Zhang (WF²Q, 1996): a large share is interleaved with many small ones.
#[test]
fn vtrr_3_wf2q_interleaves_a_large_share_with_small_ones() {
    let mut shares = [1; 11];
    shares[0] = 10;
    let mut bench = Bench::new(Wf2q::new(&setup(11)), &shares);
    let expected: Vec<u32> = (1..=10).flat_map(|small| [0, small]).collect();
    for _ in 0..3 {
        assert_eq!(bench.quanta(20), expected);
    }
}

#[test]
fn vtrr_3_wf2q_runs_three_shares_without_getting_ahead() {
    let mut bench = Bench::new(Wf2q::new(&setup(3)), &[3, 2, 1]);
    assert_eq!(bench.quanta(12), [0, 1, 0, 1, 0, 2, 0, 1, 0, 1, 0, 2]);
}

/// The others leave; the clock jumps to the client that is left, however far ahead it was.
#[test]
fn vtrr_3_wf2q_lets_no_time_go_by_when_all_are_ahead() {
    let mut bench = Bench::new(Wf2q::new(&setup(3)), &[1, 1, 1]);
    assert_eq!(bench.quanta(1), [0]);
    bench.remove(1);
    bench.remove(2);
    assert_eq!(bench.quanta(5), [0; 5]);
    bench.add(1, 1);
    bench.wake(1);
    assert_eq!(bench.quanta(4), [0, 1, 0, 1], "and an arrival then starts level");
}

/// Half a quantum behind at a share of 1 is half a quantum behind at a share of 10, not five.
#[test]
fn vtrr_3_wf2q_keeps_a_lag_as_service_when_the_share_changes() {
    let mut bench = Bench::new(Wf2q::new(&setup(2)), &[1, 1]);
    assert_eq!(bench.quanta(1), [0]);
    bench.set_share(1, 10);
    assert_eq!(bench.quanta(7), [1, 1, 1, 1, 1, 1, 0]);
}

#[test]
fn vtrr_3_wf2q_gives_a_sleeper_nothing_extra() {
    let mut bench = Bench::new(Wf2q::new(&setup(2)), &[1, 1]);
    assert_eq!(bench.run(255, Stop::Blocked), Some(0));
    assert_eq!(bench.quanta(100), [1; 100]);
    bench.wake(0);
    let after = bench.quanta(10);
    assert_eq!(after.iter().filter(|&&client| client == 0).count(), 5, "{after:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn vtrr_3_wf2q_is_within_a_quantum_of_the_ideal_both_ways(
        shares in prop::collection::vec(prop_oneof![1u32..=10, 1u32..=1000], 1..60),
    ) {
        let mut bench = Bench::new(Wf2q::new(&setup(60)), &shares);
        for _ in 0..600 {
            bench.run(255, Stop::Expired);
            let (behind, ahead) = bench.errors();
            prop_assert!(behind > -1.0 && ahead < 1.0, "{behind} to {ahead}");
        }
    }

    /// The same, while others come and quanta end early.
    #[test]
    fn vtrr_3_wf2q_keeps_both_bounds_while_clients_arrive(
        shares in prop::collection::vec(1u32..=100, 1..20),
        history in prop::collection::vec((any::<u8>(), 0u8..8), 1..600),
    ) {
        let mut bench = Bench::new(Wf2q::new(&setup(20)), &shares[..1]);
        let mut coming = (1..).zip(&shares[1..]);
        for (used, dice) in history {
            if dice == 0 {
                for (client, &share) in coming.by_ref().take(1) {
                    bench.add(client, share);
                    bench.wake(client);
                }
            }
            bench.run(if dice > 4 { 255 } else { used }, Stop::Preempted);
            let (behind, ahead) = bench.errors();
            prop_assert!(behind > -1.0 - EPSILON && ahead < 1.0 + EPSILON, "{behind} to {ahead}");
        }
    }
}
