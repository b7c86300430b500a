//! What round robin promises (VTRR paper, §2.1).

use crate::common::plain::Policy;
use crate::common::{CLIENTS, Line, QUANTUM_NS, setup};
use mete_policy::{RoundRobin, Stop};
use proptest::prelude::*;

#[test]
fn vtrr_3_rr_runs_every_client_in_turn_whatever_the_shares() {
    assert_eq!(Line::new(RoundRobin::new(&setup()), &[1, 1 << 20, 7]).letters(7), "ABCABCA");
}

#[test]
fn vtrr_3_rr_keeps_the_place_of_a_client_whose_decision_was_given_back() {
    let mut line = Line::new(RoundRobin::new(&setup()), &[1, 1, 1]);
    line.policy.pick(0, 0).expect("ready");
    line.end(0, 0, Stop::Preempted);
    assert_eq!(line.letters(4), "ABCA");
}

#[test]
fn vtrr_3_rr_sends_a_woken_client_to_the_tail() {
    let mut line = Line::new(RoundRobin::new(&setup()), &[1, 1, 1]);
    line.policy.pick(0, 0).expect("ready");
    line.end(0, QUANTUM_NS / 2, Stop::Blocked);
    assert_eq!(line.letters(1), "B");
    assert_eq!(line.policy.wake(0, line.now), None);
    assert_eq!(line.letters(4), "CBAC");
}

proptest! {
    #[test]
    fn vtrr_3_rr_keeps_clients_within_a_quantum(clients in 1..CLIENTS as usize, quanta in 1..200u64) {
        let mut line = Line::new(RoundRobin::new(&setup()), &vec![1; clients]);
        line.run_until(quanta * QUANTUM_NS, |served_ns| {
            let (least, most) = (served_ns.iter().min(), served_ns.iter().max());
            assert!(most.unwrap_or(&0) - least.unwrap_or(&0) <= QUANTUM_NS);
        });
    }
}
