//! BVT: its schedule without warp, its bound, and what a warp and the allowance do and do not do.

use crate::common::plain::Policy;
use crate::ideal::{Bench, EPSILON, QUANTUM_NS, setup, share};
use mete_policy::{Bvt, BvtSettings, DomainIndex, Nanoseconds, Setup, Stop, Warp};
use proptest::prelude::*;

fn plain(clients: u32) -> Bvt {
    Bvt::new(&setup(clients), BvtSettings::default())
}

/// Clients of shares 3, 2, 1 by least virtual time: by start where fair queueing goes by finish.
#[test]
fn vtrr_3_bvt_runs_three_shares_by_least_virtual_time() {
    let mut bench = Bench::new(plain(3), &[3, 2, 1]);
    for _ in 0..4 {
        assert_eq!(bench.quanta(6), [0, 1, 2, 0, 1, 0]);
    }
}

/// A woken client starts at the least virtual time of all that are runnable, here client 1's.
#[test]
fn vtrr_3_bvt_gives_a_sleeper_nothing_extra() {
    let mut bench = Bench::new(plain(2), &[1, 1]);
    assert_eq!(bench.run(255, Stop::Blocked), Some(0));
    assert_eq!(bench.quanta(100), [1; 100]);
    bench.wake(0);
    assert_eq!(bench.quanta(6), [0, 1, 0, 1, 0, 1]);
}

/// In the middle of a quantum of the only runnable client, virtual time has gone on with that client.
#[test]
fn vtrr_3_bvt_lets_virtual_time_go_on_while_a_quantum_is_used() {
    for (after_ns, effective) in [(0, QUANTUM_NS), (QUANTUM_NS / 2, QUANTUM_NS / 2), (QUANTUM_NS, 0)] {
        let mut policy =
            Bvt::new(&setup(2), BvtSettings { allowance_ns: Nanoseconds::new(QUANTUM_NS), warp: None });
        policy.add(0, 0, share(1), 0);
        policy.add(1, 0, share(1), 0);
        let _ = policy.wake(0, 0);
        let _ = policy.pick(0, 0);
        let _ = policy.wake(1, after_ns);
        policy.ran(0, QUANTUM_NS, Stop::Expired, QUANTUM_NS);
        // 1 is behind by what was left of the quantum; 0 goes on for the allowance of one.
        let decision = policy.pick(0, QUANTUM_NS).expect("both are ready");
        assert_eq!(decision.client, 0, "not further ahead than the allowance");
        policy.ran(0, effective, Stop::Expired, 2 * QUANTUM_NS);
        let goes_on = policy.pick(0, 2 * QUANTUM_NS).map(|decision| decision.client);
        assert_eq!(goes_on, Some(u32::from(effective > QUANTUM_NS / 2)), "after {after_ns} ns");
    }
}

/// The first client that woke has been promised the processor; the next has to be better than that client.
#[test]
fn vtrr_3_bvt_promises_a_processor_once() {
    let mut policy = Bvt::new(&Setup { processors: 2, ..setup(5) }, BvtSettings::default());
    for client in 0..5 {
        policy.add(client, 0, share(1), 0);
    }
    for client in 0..2 {
        let _ = policy.wake(client, 0);
        let _ = policy.pick(client as u16, 0);
    }
    let _ = policy.wake(4, 0);
    let now = QUANTUM_NS;
    let wakes = [2, 3].map(|client| policy.wake(client, now));
    assert_eq!(wakes, [Some(1), Some(0)], "a processor for each");
}

/// No client is runnable for a while: virtual time stands where the last one left it.
#[test]
fn vtrr_3_bvt_remembers_its_virtual_time_while_all_are_blocked() {
    let mut bench = Bench::new(plain(2), &[1]);
    bench.add(1, 1);
    bench.quanta(50);
    assert_eq!(bench.run(255, Stop::Blocked), Some(0));
    assert_eq!(bench.run(255, Stop::Expired), None);
    bench.wake(1);
    bench.wake(0);
    assert_eq!(bench.quanta(6), [0, 1, 0, 1, 0, 1]);
}

#[test]
fn vtrr_3_bvt_goes_on_for_the_allowance() {
    let settings = BvtSettings { allowance_ns: Nanoseconds::new(3 * QUANTUM_NS), warp: None };
    let mut bench = Bench::new(Bvt::new(&setup(2), settings), &[1, 1]);
    assert_eq!(bench.quanta(4), [0; 4], "a quantum, and three while it is not further ahead than that");
    assert_eq!(bench.quanta(8), [1; 8], "the other until it is as far ahead");
    let after = bench.quanta(800);
    let switches = after.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(switches, 99, "a hundred turns of eight quanta each");
    assert!(bench.error(0).abs() <= 4.0);
}

#[test]
fn vtrr_3_a_bvt_client_that_gives_way_by_itself_has_no_allowance() {
    let settings = BvtSettings { allowance_ns: Nanoseconds::new(3 * QUANTUM_NS), warp: None };
    let mut bench = Bench::new(Bvt::new(&setup(2), settings), &[1, 1]);
    assert_eq!(bench.run(255, Stop::Yielded), Some(0));
    assert_eq!(bench.quanta(1), [1]);
}

/// Client 0 runs for a quantum and may go on; client 1, picked ahead, never ran.
#[test]
fn vtrr_3_a_bvt_decision_that_is_given_back_takes_no_claim_to_go_on() {
    let settings = BvtSettings { allowance_ns: Nanoseconds::new(3 * QUANTUM_NS), warp: None };
    for picks_ahead in [false, true] {
        let mut policy = with_two_hogs(Bvt::new(&setup(3), settings));
        assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(0));
        if picks_ahead {
            assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(1));
            policy.ran(1, 0, Stop::Preempted, QUANTUM_NS);
        }
        policy.ran(0, QUANTUM_NS, Stop::Expired, QUANTUM_NS);
        let next = policy.pick(0, QUANTUM_NS).map(|decision| decision.client);
        assert_eq!(next, Some(0), "it is within its allowance; a pick ahead given back: {picks_ahead}");
    }
}

/// The client had used up its warp and has rested since. That takes effect when it stops, which it has not
/// done.
#[test]
fn vtrr_3_a_bvt_decision_that_is_given_back_begins_no_warp() {
    let mut policy = with_two_hogs(warped(100, QUANTUM_NS, 2 * QUANTUM_NS));
    let _ = policy.wake(2, 0);
    let mut now = 0;
    let order: Vec<u32> = (0..3).map(|_| run(&mut policy, &mut now, u64::MAX, Stop::Expired)).collect();
    assert_eq!(order, [2, 0, 1]);
    let decided = [0, 1, 2].map(|_| policy.pick(0, now).expect("three are ready"));
    for decision in decided {
        policy.ran(decision.client, 0, Stop::Preempted, now);
    }
    assert_eq!([0, 1, 2].map(|_| policy.pick(0, now).expect("three are ready")), decided);
}

/// Domain 1 is warped by that number of quanta.
fn warped(quanta: u64, limit_ns: u64, rest_ns: u64) -> Bvt {
    let warp = Warp {
        domain: DomainIndex::new(1),
        warp_ns: Nanoseconds::new(quanta * QUANTUM_NS),
        limit_ns: Nanoseconds::new(limit_ns),
        rest_ns: Nanoseconds::new(rest_ns),
    };
    let setup = Setup { domains: 2, ..setup(3) };
    Bvt::new(&setup, BvtSettings { allowance_ns: Nanoseconds::ZERO, warp: Some(warp) })
}

/// Two clients that compute in domain 0, and client 2, asleep, in domain 1.
fn with_two_hogs(mut policy: Bvt) -> Bvt {
    for client in 0..3 {
        policy.add(client, u16::from(client == 2), share(1), 0);
    }
    for client in 0..2 {
        let _ = policy.wake(client, 0);
    }
    policy
}

fn run(policy: &mut Bvt, now: &mut u64, part: u64, stop: Stop) -> u32 {
    let decision = policy.pick(0, *now).expect("a client is ready");
    let ran_ns = decision.slice_ns.min(part);
    *now += ran_ns;
    policy.ran(decision.client, ran_ns, stop, *now);
    decision.client
}

/// The client has just run for a quantum and the others for a tenth each, so it is ahead when it wakes.
#[test]
fn vtrr_3_a_bvt_client_that_is_ahead_preempts_only_by_its_warp() {
    for (warp, expected) in [(20, Some(0)), (0, None)] {
        let mut policy = with_two_hogs(warped(warp, u64::MAX, 0));
        let tenth_ns = QUANTUM_NS / 10;
        let mut now = 0;
        let _ = policy.wake(2, now);
        for _ in 0..3 {
            let client = policy.pick(0, now).expect("three are ready").client;
            let (ran_ns, stop) =
                if client == 2 { (QUANTUM_NS, Stop::Blocked) } else { (tenth_ns, Stop::Yielded) };
            now += ran_ns;
            policy.ran(client, ran_ns, stop, now);
        }
        let running = policy.pick(0, now).expect("two are ready").client;
        now += tenth_ns;
        assert_eq!(policy.wake(2, now), expected, "with a warp of {warp} quanta");
        policy.ran(running, tenth_ns, Stop::Preempted, now);
        let next = run(&mut policy, &mut now, tenth_ns, Stop::Expired);
        assert_eq!(next == 2, expected.is_some(), "with a warp of {warp} quanta");
    }
}

/// The client is a tenth of a quantum behind the running one, without any warp.
#[test]
fn vtrr_3_a_bvt_client_preempts_only_beyond_the_allowance() {
    for (allowance_ns, expected) in [(0, Some(0)), (QUANTUM_NS, None)] {
        let mut policy = with_two_hogs(Bvt::new(
            &setup(3),
            BvtSettings { allowance_ns: Nanoseconds::new(allowance_ns), warp: None },
        ));
        assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(0));
        assert_eq!(policy.wake(2, QUANTUM_NS / 10), expected, "with an allowance of {allowance_ns} ns");
    }
}

/// The client never blocks, so it borrows all that it can, and pays it back.
#[test]
fn vtrr_3_a_warp_changes_when_a_bvt_client_runs_and_not_how_much() {
    let mut policy = with_two_hogs(warped(10, u64::MAX, 0));
    let _ = policy.wake(2, 0);
    let mut now = 0;
    let order: Vec<u32> = (0..3000).map(|_| run(&mut policy, &mut now, u64::MAX, Stop::Expired)).collect();
    assert_eq!(order[..10], [2; 10], "ten quanta borrowed");
    for client in 0..3 {
        let quanta = order.iter().filter(|&&each| each == client).count();
        assert!((990..=1010).contains(&quanta), "client {client} had {quanta} of 3000 quanta");
    }
}

#[test]
fn vtrr_3_a_bvt_warp_ends_at_its_limit_and_rests() {
    let mut policy = with_two_hogs(warped(100, 3 * QUANTUM_NS / 2, 9 * QUANTUM_NS));
    let _ = policy.wake(2, 0);
    let mut now = 0;
    let mut quanta = |number: usize| -> Vec<u32> {
        (0..number).map(|_| run(&mut policy, &mut now, u64::MAX, Stop::Expired)).collect()
    };
    assert_eq!(quanta(2), [2, 2], "a quantum and a half, the second slice cut at the limit");
    assert_eq!(quanta(4), [0, 1, 0, 1], "and then it waits until the others are level");
    let rested = quanta(60);
    let of_it = rested.iter().filter(|&&client| client == 2).count();
    assert!((18..=24).contains(&of_it), "{of_it} of 60: its share, in bursts");
}

/// The client's second quantum in a row would need a second warp.
#[test]
fn vtrr_3_a_bvt_client_is_not_warped_again_before_it_has_rested() {
    for (rest_ns, again) in [(0, true), (u64::MAX, false)] {
        let mut policy = with_two_hogs(warped(100, QUANTUM_NS, rest_ns));
        let _ = policy.wake(2, 0);
        let mut now = 0;
        let order: Vec<u32> = (0..30).map(|_| run(&mut policy, &mut now, u64::MAX, Stop::Expired)).collect();
        assert_eq!(order[0], 2, "warped once in any case");
        assert_eq!(
            order[1..].windows(2).any(|pair| pair == [2, 2]),
            again,
            "{order:?} with a rest of {rest_ns} ns"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Virtual times of any two differ by a quantum and the allowance over the share that is ahead.
    #[test]
    fn vtrr_3_bvt_keeps_virtual_times_together(
        shares in prop::collection::vec(1u32..=100, 2..12),
        allowance in 0u64..4,
        history in prop::collection::vec((any::<u8>(), 0u8..4), 1..400),
    ) {
        let settings = BvtSettings { allowance_ns: Nanoseconds::new(allowance * QUANTUM_NS), warp: None };
        let mut bench = Bench::new(Bvt::new(&setup(12), settings), &shares);
        for (used, dice) in history {
            let stops = [Stop::Expired, Stop::Expired, Stop::Preempted, Stop::Yielded];
            bench.run(if dice < 2 { 255 } else { used }, stops[usize::from(dice)]);
            let virtual_time = |client: u32| bench.got(client) / f64::from(bench.share_of(client));
            let clients = 0..shares.len() as u32;
            let least = clients.clone().map(virtual_time).fold(f64::INFINITY, f64::min);
            for client in clients {
                let ahead = (virtual_time(client) - least) * f64::from(bench.share_of(client));
                prop_assert!(ahead <= 1.0 + allowance as f64 + EPSILON, "client {client} is {ahead} quanta ahead");
            }
        }
    }
}
