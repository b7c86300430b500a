//! What the scheduler of Linux 2.2 promises (VTRR-3; VTRR paper, §4).

use crate::common::plain::Policy;
use crate::common::{self, CLIENTS, Line, QUANTUM_NS, setup};
use mete_policy::{Goodness, Setup, Share, Stop};
use proptest::prelude::*;

fn goodness(processors: u16) -> Goodness {
    Goodness::new(&Setup { processors, ..setup() })
}

fn line(shares: &[u32]) -> Line<Goodness> {
    Line::new(goodness(1), shares)
}

/// Picks for a processor and answers the client.
fn pick(policy: &mut Goodness, processor: u16) -> u32 {
    policy.pick(processor, 0).expect("ready").client
}

/// Linux's default of 20 ticks each; the client that woke last stands first.
#[test]
fn vtrr_3_goodness_runs_equals_for_their_whole_counters() {
    assert_eq!(
        line(&[20, 20, 20]).letters(60),
        ["C"; 20].concat() + &["B"; 20].concat() + &["A"; 20].concat()
    );
}

#[test]
fn vtrr_3_goodness_runs_the_highest_sum_of_counter_and_priority_first() {
    let mut line = line(&[10, 30, 20]);
    let cycle = [(1, 30), (2, 20), (0, 10)];
    assert_eq!([line.step(), line.step(), line.step()], cycle);
    assert_eq!([line.step(), line.step(), line.step()], cycle, "recharged");
}

#[test]
fn vtrr_3_goodness_counts_a_share_above_40_as_linux_s_highest_priority() {
    let mut line = line(&[1 << 20, 41, 40]);
    let lengths = [line.step().1, line.step().1, line.step().1];
    assert_eq!(lengths, [40, 40, 40]);
}

/// The counter that runs is what the old share gave; the recharge after it goes by the new one.
#[test]
fn vtrr_3_goodness_takes_a_new_share_from_the_next_recharge_on() {
    let mut line = line(&[10, 20]);
    let decision = line.policy.pick(0, 0).expect("ready");
    line.policy.set_share(1, Share::new(30).expect("a share"), 0);
    line.end(decision.client, decision.slice_ns, Stop::Expired);
    assert_eq!([line.step(), line.step(), line.step()], [(0, 10), (1, 30), (0, 10)]);
}

#[test]
fn vtrr_3_goodness_counts_its_recharges() {
    let mut line = line(&[10, 20]);
    for _ in 0..5 {
        line.step();
    }
    let mut counted = Vec::new();
    line.policy.counters(&mut |name, count| counted.push((name, count)));
    assert_eq!(counted, [("recharges", 2)]);
}

#[test]
fn vtrr_3_goodness_runs_one_client_all_the_time() {
    assert_eq!(line(&[3]).letters(9), "AAAAAAAAA");
}

/// Its counter goes 20, 10 + 20, 15 + 20, … and never reaches 40.
#[test]
fn vtrr_3_goodness_lets_a_blocked_client_save_less_than_twice_its_priority() {
    let mut line = line(&[20, 20]);
    let _ = line.policy.pick(0, 0);
    line.end(1, 0, Stop::Blocked);
    line.letters(1);
    line.letters(20 * 20);
    assert_eq!(line.policy.wake(1, line.now), None, "no client runs that could be preempted");
    assert_eq!(line.step(), (1, 39));
}

/// What the policy answers when one of two equals wakes after the other ran for that number of ticks.
fn wake_after(ticks: u64) -> Option<u16> {
    let mut line = line(&[20, 20]);
    let _ = line.policy.pick(0, 0);
    line.end(1, 0, Stop::Blocked);
    let _ = line.policy.pick(0, 0);
    line.policy.wake(1, ticks * QUANTUM_NS)
}

#[test]
fn vtrr_3_goodness_preempts_for_a_client_that_wakes_with_more_left_and_not_for_an_equal() {
    assert_eq!(wake_after(0), None, "20 + 20 against 20 + 20 + 1");
    assert_eq!(wake_after(1), None, "against 19 + 20 + 1");
    assert_eq!(wake_after(2), Some(0), "against 18 + 20 + 1");
}

#[test]
fn vtrr_3_goodness_prefers_among_equals_the_last_to_run_then_the_last_to_wake() {
    let mut line = line(&[20, 20, 20]);
    assert_eq!(line.policy.pick(0, 0).map(|decision| decision.client), Some(2), "it woke last");
    line.end(2, QUANTUM_NS, Stop::Preempted);
    let again = line.policy.pick(0, 0).map(|decision| decision.client);
    assert_eq!(again, Some(2), "19 + 20 + 1 against 20 + 20");
}

#[test]
fn vtrr_3_goodness_counts_a_client_that_yields_as_zero_once() {
    let mut line = line(&[20, 20]);
    assert_eq!(line.policy.pick(0, 0).map(|decision| decision.client), Some(1));
    line.end(1, 0, Stop::Yielded);
    assert_eq!(line.policy.pick(0, 0).map(|decision| decision.client), Some(0));
    line.end(0, 20 * QUANTUM_NS, Stop::Expired);
    assert_eq!(line.step(), (1, 20));
}

/// Wherever it stands in the queue: 40 + 40 would be the best of the three.
#[test]
fn vtrr_3_goodness_lets_all_others_pass_a_client_that_yields() {
    let mut line = line(&[40, 10, 20]);
    assert_eq!(line.policy.pick(0, 0).map(|decision| decision.client), Some(0));
    line.end(0, 0, Stop::Yielded);
    assert_eq!(line.step(), (2, 20));
}

#[test]
fn vtrr_3_goodness_counts_parts_of_a_tick() {
    let mut line = line(&[2]);
    for (part, left) in [(2, 8), (4, 6), (2, 2), (2, 8)] {
        let decision = line.policy.pick(0, line.now).expect("ready");
        assert_eq!(decision.slice_ns, left * QUANTUM_NS / 4);
        line.end(0, part * QUANTUM_NS / 4, Stop::Preempted);
    }
}

#[test]
fn vtrr_3_goodness_keeps_clients_on_the_processor_where_they_ran() {
    let mut policy = goodness(2);
    common::start(&mut policy, &[20, 20]);
    assert_eq!([pick(&mut policy, 0), pick(&mut policy, 1)], [1, 0]);
    for client in [0, 1] {
        policy.ran(client, 5 * QUANTUM_NS, Stop::Expired, 0);
    }
    assert_eq!([pick(&mut policy, 1), pick(&mut policy, 0)], [0, 1], "15 + 15 + 20 + 1 against 15 + 20");
}

#[test]
fn vtrr_3_goodness_moves_a_client_that_is_better_by_more_than_the_bonus() {
    let mut policy = goodness(2);
    common::start(&mut policy, &[1, 40]);
    assert_eq!([pick(&mut policy, 0), pick(&mut policy, 1)], [1, 0]);
    policy.ran(1, 0, Stop::Preempted, 0);
    policy.ran(0, 0, Stop::Preempted, 0);
    assert_eq!(pick(&mut policy, 1), 1, "40 + 40 against 1 + 1 + 15 + 1");
}

proptest! {
    /// Clients that never block: a cycle ends when all counters are used up, and each had its priority.
    #[test]
    fn vtrr_3_goodness_is_in_proportion_to_priorities_at_the_end_of_each_cycle(
        priorities in prop::collection::vec(1u32..=40, 1..CLIENTS as usize),
    ) {
        let mut line = line(&priorities);
        for cycle in 1..=5 {
            priorities.iter().for_each(|_| { line.step(); });
            for (&priority, &served_ns) in priorities.iter().zip(&line.served_ns) {
                prop_assert_eq!(served_ns, cycle * u64::from(priority) * QUANTUM_NS);
            }
        }
    }
}
