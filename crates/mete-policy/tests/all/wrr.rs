//! What weighted round robin promises (VTRR-3; VTRR paper, §2.1).

use crate::common::plain::Policy;
use crate::common::{self, CLIENTS, Line, QUANTUM_NS, setup};
use mete_policy::{Nanoseconds, Setup, Share, Stop, WeightedRoundRobin};
use proptest::prelude::*;

fn wrr() -> WeightedRoundRobin {
    WeightedRoundRobin::new(&setup())
}

#[test]
fn vtrr_3_wrr_runs_shares_3_2_1_as_a_a_a_b_b_c() {
    assert_eq!(Line::new(wrr(), &[3, 2, 1]).letters(12), "AAABBCAAABBC");
}

#[test]
fn vtrr_3_wrr_runs_one_client_all_the_time() {
    assert_eq!(Line::new(wrr(), &[5]).letters(10), "AAAAAAAAAA");
}

#[test]
fn vtrr_3_wrr_gives_a_share_larger_than_all_others_together_a_turn_of_that_length() {
    let mut line = Line::new(wrr(), &[1 << 20, 1, 1]);
    assert_eq!(
        [line.step(), line.step(), line.step(), line.step()],
        [(0, 1 << 20), (1, 1), (2, 1), (0, 1 << 20)]
    );
}

#[test]
fn vtrr_3_wrr_takes_a_new_share_from_the_next_turn_on() {
    let mut line = Line::new(wrr(), &[2, 1]);
    let decision = line.policy.pick(0, 0).expect("ready");
    line.policy.set_share(0, Share::new(4).expect("a share"), 0);
    line.end(decision.client, decision.slice_ns, Stop::Expired);
    assert_eq!(decision.slice_ns, 2 * QUANTUM_NS, "the turn that runs is not changed");
    assert_eq!(line.letters(6), "BAAAAB");
}

#[test]
fn vtrr_3_wrr_goes_on_with_a_turn_that_was_interrupted_or_given_back() {
    let mut line = Line::new(wrr(), &[3, 1]);
    line.policy.pick(0, 0).expect("ready");
    line.end(0, QUANTUM_NS, Stop::Preempted);
    line.policy.pick(0, 0).expect("ready");
    line.end(0, 0, Stop::Preempted);
    assert_eq!(line.letters(6), "AABAAA");
}

#[test]
fn vtrr_3_wrr_picked_ahead_gives_the_next_in_turn() {
    let mut policy = wrr();
    common::start(&mut policy, &[2, 1]);
    let (now, ahead) = (policy.pick(0, 0).expect("ready"), policy.pick(0, 0).expect("ready"));
    assert_eq!((now.client, ahead.client, policy.pick(0, 0)), (0, 1, None));
}

#[test]
fn vtrr_3_wrr_serves_several_processors_from_one_queue() {
    let mut policy = wrr();
    common::start(&mut policy, &[3, 2, 1]);
    let on: Vec<_> = (0..3).map(|processor| policy.pick(processor, 0).expect("ready").client).collect();
    assert_eq!(on, [0, 1, 2]);
}

#[test]
fn vtrr_3_wrr_survives_slices_beyond_the_range_of_time() {
    let mut policy = WeightedRoundRobin::new(&Setup { quantum_ns: Nanoseconds::MAX, ..setup() });
    common::start(&mut policy, &[1 << 20]);
    assert_eq!(policy.pick(0, 0).map(|decision| decision.slice_ns), Some(u64::MAX));
}

proptest! {
    #[test]
    fn vtrr_3_wrr_is_exact_at_the_end_of_each_round(shares in prop::collection::vec(1u32..=1000, 1..CLIENTS as usize)) {
        let mut line = Line::new(wrr(), &shares);
        for round in 1..=5 {
            shares.iter().for_each(|_| { line.step(); });
            for (&share, &served_ns) in shares.iter().zip(&line.served_ns) {
                prop_assert_eq!(served_ns, round * u64::from(share) * QUANTUM_NS);
            }
        }
    }
}
