//! What fair share promises (VTRR-3; Kay and Lauder 1988). Its promise of parts holds in the long run:
//! here in the second half of 40 half-lives of usage, 6400 quanta each.

use crate::common::plain::Policy;
use crate::common::{self, DOMAINS, Line, QUANTUM_NS, setup};
use mete_policy::{FairShare, Setup, Share, Stop};
use proptest::prelude::*;

const HALF_LIFE_NS: u64 = 6400 * QUANTUM_NS;

fn share(weight: u32) -> Share {
    Share::new(weight).expect("a share")
}

/// Users with one process for each of these shares; user 0 is domain 1.
fn users(users: &[(u32, &[u32])]) -> Line<FairShare> {
    let mut line = Line::new(FairShare::new(&Setup { processors: 1, ..setup() }), &[]);
    let mut client = 0;
    for (domain, (user, processes)) in (1..).zip(users) {
        line.policy.add_domain(domain, 0, share(*user));
        for &process in *processes {
            common::join(&mut line.policy, client, domain, process);
            client += 1;
        }
    }
    line.served_ns = vec![0; client as usize];
    line
}

/// What every client has in the second half, as parts of the whole.
fn settled(line: &mut Line<FairShare>) -> Vec<f64> {
    line.run_until(20 * HALF_LIFE_NS, |_| {});
    line.served_ns.fill(0);
    line.run_until(40 * HALF_LIFE_NS, |_| {});
    let all: u64 = line.served_ns.iter().sum();
    line.served_ns.iter().map(|&served_ns| served_ns as f64 / all as f64).collect()
}

fn assert_parts(found: &[f64], expected: &[f64]) {
    for (&found_part, &part) in found.iter().zip(expected) {
        assert!((found_part / part - 1.0).abs() < 0.05, "{found:?} is not within 5 % of {expected:?}");
    }
}

#[test]
fn vtrr_3_fair_share_divides_between_users_whatever_their_number_of_processes() {
    let parts = settled(&mut users(&[(1, &[1; 5]), (1, &[1])]));
    assert_parts(&[parts[..5].iter().sum(), parts[5]], &[0.5, 0.5]);
}

#[test]
fn vtrr_3_fair_share_divides_between_users_by_their_shares() {
    let parts = settled(&mut users(&[(3, &[1; 2]), (1, &[1; 4]), (6, &[1])]));
    assert_parts(&[parts[..2].iter().sum(), parts[2..6].iter().sum(), parts[6]], &[0.3, 0.1, 0.6]);
}

#[test]
fn vtrr_3_fair_share_divides_a_user_s_part_between_its_processes_by_theirs() {
    let parts = settled(&mut users(&[(1, &[1, 3]), (1, &[2, 2])]));
    assert_parts(&parts, &[0.125, 0.375, 0.25, 0.25]);
}

#[test]
fn vtrr_3_fair_share_divides_among_the_processes_of_one_user() {
    assert_parts(&settled(&mut users(&[(7, &[1, 2, 5])])), &[0.125, 0.25, 0.625]);
}

#[test]
fn vtrr_3_fair_share_gives_a_share_larger_than_all_others_together_almost_all() {
    let parts = settled(&mut users(&[(1 << 20, &[1]), (1, &[1])]));
    assert!(parts[0] > 0.999 && parts[1] > 0.0, "{parts:?}");
}

#[test]
fn vtrr_3_fair_share_runs_one_client_all_the_time() {
    assert_eq!(users(&[(1, &[1])]).letters(5), "AAAAA");
}

#[test]
fn vtrr_3_fair_share_follows_a_change_of_a_user_s_share() {
    let mut line = users(&[(1, &[1]), (1, &[1])]);
    line.run_until(10 * HALF_LIFE_NS, |_| {});
    line.policy.set_domain_share(1, share(3), line.now);
    assert_parts(&settled(&mut line), &[0.75, 0.25]);
}

#[test]
fn vtrr_3_fair_share_adjusts_priorities_once_in_100_quanta() {
    let mut line = users(&[(1, &[1]), (1, &[1])]);
    line.run_until(1_000 * QUANTUM_NS, |_| {});
    let mut counted = Vec::new();
    line.policy.counters(&mut |name, count| counted.push((name, count)));
    assert_eq!(counted, [("priority adjustments", 10)]);
}

/// Before there is any usage all values are equal: round robin.
#[test]
fn vtrr_3_fair_share_begins_as_round_robin() {
    assert_eq!(users(&[(1, &[1, 1]), (9, &[1])]).letters(3), "ABC");
}

#[test]
fn vtrr_3_fair_share_prefers_a_user_that_was_away() {
    let mut line = users(&[(1, &[1]), (1, &[1])]);
    let _ = line.policy.pick(0, 0);
    line.end(0, 0, Stop::Blocked);
    line.run_until(2 * HALF_LIFE_NS, |_| {});
    let _ = line.policy.pick(0, line.now);
    assert_eq!(line.policy.wake(0, line.now), Some(0), "it preempts");
    line.end(1, 0, Stop::Preempted);
    line.served_ns.fill(0);
    let end_ns = line.now + 200 * QUANTUM_NS;
    line.run_until(end_ns, |_| {});
    assert!(line.served_ns[0] > 2 * line.served_ns[1], "{:?}", line.served_ns);
}

/// Nothing decays while the clock stands, and yet every client is served.
#[test]
fn vtrr_3_fair_share_starves_no_client_when_time_stands_still() {
    let mut line = users(&[(1 << 20, &[1]), (1, &[1])]);
    let mut served = [0u32; 2];
    for _ in 0..100_000 {
        let decision = line.policy.pick(0, u64::MAX).expect("ready");
        served[decision.client as usize] += 1;
        line.policy.ran(decision.client, decision.slice_ns, Stop::Expired, 0);
    }
    assert!(served.iter().all(|&quanta| quanta > 0), "{served:?}");
}

#[test]
fn vtrr_3_fair_share_serves_several_processors_from_one_set_of_queues() {
    let mut policy = FairShare::new(&Setup { processors: 2, ..setup() });
    common::start(&mut policy, &[1, 1]);
    let on: Vec<_> = (0..2).map(|processor| policy.pick(processor, 0).expect("ready").client).collect();
    assert_eq!((on, policy.pick(0, 0)), (vec![0, 1], None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Within a tenth: a process that runs about once a second finds values decayed in steps.
    #[test]
    fn vtrr_3_fair_share_tends_to_the_users_parts(
        drawn in prop::collection::vec((1u32..=10, 1usize..=3), 2..usize::from(DOMAINS)),
    ) {
        let ones = [1; 3];
        let given: Vec<_> = drawn.iter().map(|&(user, processes)| (user, &ones[..processes])).collect();
        let parts = settled(&mut users(&given));
        let all: u32 = drawn.iter().map(|&(user, _)| user).sum();
        let mut parts = parts.iter();
        for &(user, processes) in &drawn {
            let found: f64 = parts.by_ref().take(processes).sum();
            let ratio = found / (f64::from(user) / f64::from(all));
            prop_assert!((ratio - 1.0).abs() < 0.1, "{} of the part of {} in {:?}", ratio, user, drawn);
        }
    }
}
