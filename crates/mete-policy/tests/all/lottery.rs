//! What lottery scheduling promises (VTRR-3; Waldspurger and Weihl 1994).

use crate::common::plain::Policy;
use crate::common::{self, Line, QUANTUM_NS, setup};
use mete_policy::{Lottery, Setup, Share, Stop};

fn line(seed: u64, shares: &[u32]) -> Line<Lottery> {
    Line::new(Lottery::new(&Setup { seed, ..setup() }), shares)
}

/// How often each of n draws went to each client.
fn wins(line: &mut Line<Lottery>, draws: u32) -> Vec<u32> {
    let mut wins = vec![0; line.served_ns.len()];
    (0..draws).for_each(|_| wins[line.step().0 as usize] += 1);
    wins
}

/// Within five standard deviations of a binomial distribution (§2.2). Seeds are fixed: a test that passes
/// once always passes.
#[test]
fn vtrr_3_lottery_wins_follow_the_shares_within_the_statistical_bound() {
    const DRAWS: u32 = 20_000;
    for seed in 0..10 {
        for shares in [&[1, 1][..], &[3, 2, 1], &[1 << 20, 1 << 19], &[10, 20, 30, 40, 50, 1], &[1000, 1]] {
            let total: u32 = shares.iter().sum();
            let wins = wins(&mut line(seed, shares), DRAWS);
            for (&share, wins) in shares.iter().zip(wins) {
                let part = f64::from(share) / f64::from(total);
                let (mean, n) = (part * f64::from(DRAWS), f64::from(DRAWS));
                let deviation = (n * part * (1.0 - part)).sqrt();
                let off = (f64::from(wins) - mean).abs();
                assert!(off <= 5.0 * deviation, "seed {seed}, {share} of {total}: {wins} for {mean}");
            }
        }
    }
}

#[test]
fn vtrr_3_lottery_draws_the_same_schedule_for_the_same_seed_and_another_for_another() {
    let schedule = |seed| line(seed, &[3, 2, 1]).letters(200);
    assert_eq!(schedule(7), schedule(7));
    assert_ne!(schedule(7), schedule(8));
}

#[test]
fn vtrr_3_lottery_runs_one_client_all_the_time() {
    assert_eq!(line(1, &[5]).letters(5), "AAAAA");
}

/// The source's own example (§4.5): of two clients with equal tickets one uses a fifth of each quantum. Both
/// get the same time.
#[test]
fn vtrr_3_lottery_compensates_a_client_that_uses_a_part_of_its_quantum() {
    let mut line = line(3, &[400, 400]);
    let mut wins = [0u32; 2];
    for _ in 0..60_000 {
        let decision = line.policy.pick(0, line.now).expect("ready");
        wins[decision.client as usize] += 1;
        if decision.client == 1 {
            line.end(1, decision.slice_ns / 5, Stop::Blocked);
            assert_eq!(line.policy.wake(1, line.now), None);
        } else {
            line.end(0, decision.slice_ns, Stop::Expired);
        }
    }
    let times = line.quanta(0) / line.quanta(1);
    assert!((0.95..1.05).contains(&times), "{times}");
    assert!(wins[1] > 4 * wins[0], "it wins five times as often: {wins:?}");
}

#[test]
fn vtrr_3_lottery_takes_compensation_away_at_the_next_win() {
    let mut line = line(5, &[1, 1]);
    let _ = line.policy.pick(0, 0);
    let _ = line.policy.pick(0, 0);
    line.end(0, 1, Stop::Yielded);
    line.end(1, QUANTUM_NS, Stop::Expired);
    while line.step().0 != 0 {}
    let wins = wins(&mut line, 10_000);
    assert!(wins[0].abs_diff(5_000) <= 250, "five standard deviations: {wins:?}");
}

#[test]
fn vtrr_3_lottery_keeps_compensation_over_a_decision_that_was_given_back() {
    let mut line = line(5, &[1, 1]);
    let (first, second) = (line.policy.pick(0, 0), line.policy.pick(0, 0));
    assert!(first.is_some() && second.is_some());
    line.end(0, 1, Stop::Yielded);
    line.end(1, QUANTUM_NS, Stop::Expired);
    let mut wins = [0u32; 2];
    for _ in 0..10_000 {
        let decision = line.policy.pick(0, line.now).expect("ready");
        wins[decision.client as usize] += 1;
        line.policy.ran(decision.client, 0, Stop::Preempted, line.now);
    }
    assert!(wins[0] > 100 * wins[1], "256 tickets to one: {wins:?}");
}

#[test]
fn vtrr_3_lottery_draws_among_new_shares_at_once() {
    let mut line = line(2, &[1, 1]);
    line.policy.set_share(0, Share::MAX, 0);
    let wins = wins(&mut line, 1_000);
    assert!(wins[0] >= 990, "2²⁰ tickets to one: {wins:?}");
}

#[test]
fn vtrr_3_lottery_holds_one_lottery_for_all_processors() {
    let mut policy = Lottery::new(&setup());
    common::start(&mut policy, &[1, 1, 1]);
    let mut on: Vec<_> = (0..3).map(|processor| policy.pick(processor, 0).expect("ready").client).collect();
    on.sort_unstable();
    assert_eq!((on, policy.pick(0, 0)), (vec![0, 1, 2], None));
}
