//! Virtual-time round robin on several processors: one queue serves all of them.

use crate::common::feasible::feasible;
use crate::common::plain::Policy;
use mete_policy::{Setup, Share, Stop, Vtrr};
use proptest::prelude::*;

fn start(policy: &mut Vtrr, shares: &[u32]) {
    for (client, &share) in (0..).zip(shares) {
        policy.add(client, 0, Share::new(share).expect("in range"), 0);
        let _ = policy.wake(client, 0);
    }
}

/// Lets every processor take a quantum at a time, all at the same moments, and counts each client's quanta.
fn serve(policy: &mut Vtrr, clients: usize, processors: u16, quanta: usize) -> Vec<u64> {
    let mut served = vec![0; clients];
    for _ in 0..quanta {
        let picked: Vec<_> = (0..processors).filter_map(|processor| policy.pick(processor, 0)).collect();
        assert_eq!(picked.len(), clients.min(processors.into()), "no processor is idle without need");
        for decision in picked {
            policy.ran(decision.client, decision.slice_ns, Stop::Expired, 0);
            served[decision.client as usize] += 1;
        }
    }
    served
}

fn served(shares: &[u32], processors: u16, quanta: usize) -> Vec<u64> {
    let setup = Setup { processors, ..Setup::for_clients(shares.len() as u32) };
    let mut policy = Vtrr::new(&setup);
    start(&mut policy, shares);
    serve(&mut policy, shares.len(), processors, quanta)
}

#[test]
fn vtrr_7_a_client_runs_on_one_processor_at_a_time() {
    assert_eq!(served(&[100, 1], 4, 50), [50, 50], "each has a processor, two are idle");
}

#[test]
fn vtrr_7_a_share_that_one_processor_cannot_give_is_one_processor() {
    assert_eq!(served(&[1000, 1, 1], 2, 3000), [3000, 1500, 1500]);
    assert_eq!(served(&[1000, 100, 3, 2, 1], 3, 6000), [6000, 6000, 3000, 2000, 1000]);
}

/// Two processors: 6 of 8 is infeasible, 2 of 4 and 2 of 8 are not. The share changes while its client runs.
#[test]
fn vtrr_7_a_share_that_becomes_feasible_is_weighed_again() {
    let mut policy = Vtrr::new(&Setup { processors: 2, ..Setup::for_clients(5) });
    start(&mut policy, &[6, 1, 1]);
    assert_eq!(serve(&mut policy, 3, 2, 100), [100, 50, 50]);
    assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(0));
    policy.set_share(0, Share::new(2).expect("in range"), 0);
    policy.ran(0, 10_000_000, Stop::Expired, 0);
    let served = serve(&mut policy, 3, 2, 1000);
    assert!(served[0].abs_diff(1000) <= 2 && served[1].abs_diff(500) <= 2, "{served:?}");
    start(&mut policy, &[2, 1, 1, 2, 2]);
    let served = serve(&mut policy, 5, 2, 1000);
    let expected = [500, 250, 250, 500, 500];
    assert!(served.iter().zip(expected).all(|(&had, due)| had.abs_diff(due) <= 4), "{served:?}");
}

#[test]
fn vtrr_7_clients_get_the_whole_of_feasible_shares() {
    assert_eq!(served(&[3, 2, 1], 2, 3000), [3000, 2000, 1000]);
    assert_eq!(served(&[2, 2, 1, 1, 1, 1], 2, 4000), [2000, 2000, 1000, 1000, 1000, 1000]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn vtrr_7_every_client_has_its_feasible_share_within_a_bounded_lag(
        shares in prop::collection::vec(1u32..=20, 1..60), processors in 2u16..=16
    ) {
        const QUANTA: usize = 3_000;
        let served = served(&shares, processors, QUANTA);
        for ((&had, part), share) in served.iter().zip(feasible(&shares, processors)).zip(&shares) {
            let lag = had as f64 - part * QUANTA as f64;
            prop_assert!(lag.abs() <= f64::from(*share) + 2.0, "share {share}: {lag} of {}", part * QUANTA as f64);
        }
    }
}
