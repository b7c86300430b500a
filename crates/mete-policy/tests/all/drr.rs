//! What deficit round robin promises (VTRR-3; Shreedhar and Varghese 1995, §3, §4).

use crate::common::plain::Policy;
use crate::common::{CLIENTS, Line, QUANTUM_NS, setup};
use mete_policy::{DeficitRoundRobin, Share, Stop};
use proptest::prelude::*;

fn line(shares: &[u32]) -> Line<DeficitRoundRobin> {
    Line::new(DeficitRoundRobin::new(&setup()), shares)
}

/// Runs the next client for that number of quanta, whatever its slice, and answers the slice in quanta.
fn run(line: &mut Line<DeficitRoundRobin>, quanta: u64, stop: Stop) -> (u32, u64) {
    let decision = line.policy.pick(0, line.now).expect("ready");
    line.end(decision.client, quanta * QUANTUM_NS, stop);
    (decision.client, decision.slice_ns / QUANTUM_NS)
}

#[test]
fn vtrr_3_drr_with_full_turns_is_weighted_round_robin() {
    assert_eq!(line(&[3, 2, 1]).letters(12), "AAABBCAAABBC");
}

#[test]
fn vtrr_3_drr_carries_over_what_a_yielding_client_left() {
    let mut line = line(&[4, 1]);
    assert_eq!(run(&mut line, 1, Stop::Yielded), (0, 4));
    assert_eq!(run(&mut line, 1, Stop::Expired), (1, 1));
    assert_eq!(run(&mut line, 7, Stop::Expired), (0, 7), "4 of this turn and 3 of the last");
    run(&mut line, 1, Stop::Expired);
    assert_eq!(run(&mut line, 4, Stop::Expired), (0, 4), "it is used up");
}

#[test]
fn vtrr_3_drr_takes_off_what_a_client_overran() {
    let mut line = line(&[4, 1]);
    assert_eq!(run(&mut line, 6, Stop::Expired), (0, 4));
    run(&mut line, 1, Stop::Expired);
    assert_eq!(run(&mut line, 2, Stop::Expired), (0, 2));
}

#[test]
fn vtrr_3_drr_lets_no_client_save_more_than_an_allotment() {
    let mut line = line(&[4, 1]);
    for _ in 0..10 {
        run(&mut line, 0, Stop::Yielded);
        run(&mut line, 1, Stop::Expired);
    }
    assert_eq!(run(&mut line, 8, Stop::Expired), (0, 8));
}

#[test]
fn vtrr_3_drr_forgets_a_remainder_but_not_a_debt_when_a_client_blocks() {
    let mut line = line(&[4, 1]);
    run(&mut line, 1, Stop::Blocked);
    let _ = line.policy.wake(0, line.now);
    run(&mut line, 1, Stop::Expired);
    assert_eq!(run(&mut line, 5, Stop::Blocked), (0, 4), "the remainder is gone");
    let _ = line.policy.wake(0, line.now);
    run(&mut line, 1, Stop::Expired);
    assert_eq!(run(&mut line, 3, Stop::Expired), (0, 3), "the debt is not");
}

#[test]
fn vtrr_3_drr_goes_on_with_a_turn_that_was_interrupted_or_given_back() {
    let mut line = line(&[3, 1]);
    assert_eq!(run(&mut line, 1, Stop::Preempted), (0, 3));
    assert_eq!(run(&mut line, 0, Stop::Preempted), (0, 2));
    assert_eq!(run(&mut line, 2, Stop::Expired), (0, 2));
    assert_eq!(run(&mut line, 1, Stop::Expired), (1, 1));
}

#[test]
fn vtrr_3_drr_measures_the_next_turn_by_a_new_share() {
    let mut line = line(&[1, 1]);
    let decision = line.policy.pick(0, 0).expect("ready");
    line.policy.set_share(0, Share::MAX, 0);
    line.end(decision.client, decision.slice_ns, Stop::Expired);
    run(&mut line, 1, Stop::Expired);
    assert_eq!(run(&mut line, 1, Stop::Expired), (0, 1 << 20));
}

/// How much of its slice a client uses, in 1/256: from half of it to half more, so that no remainder
/// and no debt reaches an allotment.
fn uses() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(128u64..=384, 300)
}

proptest! {
    /// W/S = turns × quantum − deficit/S. The numbers of turns differ by at most one, and each deficit
    /// lies within an allotment.
    #[test]
    fn vtrr_3_drr_keeps_services_by_share_within_three_quanta(
        shares in prop::collection::vec(1u32..=1000, 2..CLIENTS as usize), uses in uses(),
    ) {
        let mut line = line(&shares);
        for used in uses {
            let decision = line.policy.pick(0, line.now).expect("ready");
            let stop = if used < 256 { Stop::Yielded } else { Stop::Expired };
            let whole_ns = decision.slice_ns.min(u64::from(shares[decision.client as usize]) * QUANTUM_NS);
            let over_ns = whole_ns * used.saturating_sub(256) / 256;
            line.end(decision.client, decision.slice_ns * used.min(256) / 256 + over_ns, stop);
            let by_share = |(served_ns, &share): (&u64, &u32)| *served_ns as f64 / f64::from(share);
            let services = || line.served_ns.iter().zip(&shares).map(by_share);
            let (least, most) = (services().fold(f64::MAX, f64::min), services().fold(0.0, f64::max));
            prop_assert!(most - least <= 3.0 * QUANTUM_NS as f64, "{least} to {most} ns");
        }
    }
}
