//! The edges that every fair-queueing policy has to define: one client, no ready client, a share above all
//! others together, the largest share, shares that change while their clients run, absurd times.

use crate::common::plain::Policy;
use crate::ideal::{Bench, QUANTUM_NS, setup, share};
use mete_policy::{Nanoseconds, Setup, Stop, by_name};

const FAIR: [&str; 6] = ["wfq-linear", "wfq", "wf2q+", "stride", "bvt", "eevdf"];

fn each(clients: u32, check: impl Fn(&str, &mut Bench<Box<dyn mete_policy::Policy + Send>>), shares: &[u32]) {
    for name in FAIR {
        let policy = (by_name(name).expect("it is in the catalog").make)(&setup(clients));
        check(name, &mut Bench::new(policy, shares));
    }
}

fn count(order: &[u32], client: u32) -> usize {
    order.iter().filter(|&&each| each == client).count()
}

#[test]
fn vtrr_3_one_client_has_the_processor_to_itself() {
    each(1, |name, bench| assert_eq!(bench.quanta(100), [0; 100], "{name}"), &[7]);
}

#[test]
fn vtrr_3_when_all_are_blocked_no_client_runs_until_one_wakes() {
    let check = |name: &str, bench: &mut Bench<_>| {
        for _ in 0..3 {
            bench.run(255, Stop::Blocked);
        }
        assert_eq!(bench.run(255, Stop::Expired), None, "{name}");
        bench.wake(1);
        assert_eq!(bench.quanta(5), [1; 5], "{name}");
    };
    each(3, check, &[1, 2, 3]);
}

#[test]
fn vtrr_3_a_share_above_all_others_together_has_just_that() {
    let check = |name: &str, bench: &mut Bench<_>| {
        let order = bench.quanta(1200);
        assert!((1000 - 5..=1000 + 5).contains(&count(&order, 2)), "{name}: {} of 1200", count(&order, 2));
        assert!((95..=105).contains(&count(&order, 0)), "{name}: {} of 1200", count(&order, 0));
    };
    each(3, check, &[1, 1, 10]);
}

/// Of a million quanta the small share gets its one.
#[test]
fn vtrr_3_the_largest_share_does_not_starve_the_smallest() {
    let check = |name: &str, bench: &mut Bench<_>| {
        let mut of_the_small = 0;
        for _ in 0..(1 << 20) + 1 {
            of_the_small += usize::from(bench.run(255, Stop::Expired) == Some(0));
        }
        assert_eq!(of_the_small, 1, "{name}");
    };
    each(2, check, &[1, 1 << 20]);
}

#[test]
fn vtrr_3_a_share_that_changes_while_its_client_runs_counts_from_then_on() {
    let check = |name: &str, bench: &mut Bench<Box<dyn mete_policy::Policy + Send>>| {
        bench.quanta(10);
        let decision = bench.policy.pick(0, bench.now).expect("two are ready");
        bench.policy.set_share(0, share(4), bench.now);
        bench.policy.set_share(1, share(1), bench.now);
        bench.policy.ran(decision.client, decision.slice_ns, Stop::Expired, bench.now);
        let order = bench.quanta(1000);
        assert!((790..=810).contains(&count(&order, 0)), "{name}: {} of 1000", count(&order, 0));
    };
    each(2, check, &[1, 1]);
}

/// Of a nanosecond's 2^24 units, each of these shares gets 16 and a remainder: the first almost none, the
/// second almost a whole unit. If the remainders were dropped, both would get the same.
#[test]
fn vtrr_3_remainders_of_divisions_do_not_add_up_to_an_error() {
    const SHARES: [u32; 2] = [(1 << 20) - 1, 986_896];
    for name in FAIR {
        let setup = Setup { quantum_ns: Nanoseconds::new(1), ..setup(2) };
        let mut policy = (by_name(name).expect("it is in the catalog").make)(&setup);
        for (client, weight) in [(0, SHARES[0]), (1, SHARES[1])] {
            policy.add(client, 0, share(weight), 0);
            let _ = policy.wake(client, 0);
        }
        let mut quanta = [0u32; 2];
        for _ in 0..200_000u32 {
            let client = policy.pick(0, 0).expect("two are ready").client;
            quanta[client as usize] += 1;
            policy.ran(client, 1, Stop::Expired, 0);
        }
        let ideal = 200_000.0 * f64::from(SHARES[0]) / f64::from(SHARES[0] + SHARES[1]);
        assert!((f64::from(quanta[0]) - ideal).abs() <= 1.0, "{name}: {quanta:?}, ideally {ideal}");
    }
}

/// A client forgotten while it runs leaves nothing behind, and its number may be used again.
#[test]
fn vtrr_3_a_client_that_is_removed_while_it_runs_is_forgotten() {
    let check = |name: &str, bench: &mut Bench<Box<dyn mete_policy::Policy + Send>>| {
        let decision = bench.policy.pick(0, 0).expect("two are ready");
        bench.remove(decision.client);
        bench.policy.ran(decision.client, u64::MAX, Stop::Expired, 0);
        assert_eq!(bench.quanta(3), [1; 3], "{name}");
        bench.add(0, 1);
        bench.wake(0);
        let order = bench.quanta(100);
        assert!((49..=51).contains(&count(&order, 0)), "{name}: {order:?}");
    };
    each(2, check, &[1, 1]);
}

/// Five centuries in one slice, again and again: virtual time saturates, nothing panics, a client runs.
#[test]
fn vtrr_3_absurd_times_and_quanta_are_survived() {
    for name in FAIR {
        for quantum_ns in [0, 1, QUANTUM_NS, u64::MAX] {
            let setup = Setup { quantum_ns: Nanoseconds::new(quantum_ns), ..setup(3) };
            let mut policy = (by_name(name).expect("it is in the catalog").make)(&setup);
            for (client, weight) in [(0, 1), (1, 1 << 20), (2, 3)] {
                policy.add(client, 0, share(weight), 0);
                let _ = policy.wake(client, 0);
            }
            for round in 0..1000u32 {
                let client = policy.pick(0, u64::MAX).expect("three are ready").client;
                let stop = if round % 3 == 0 { Stop::Blocked } else { Stop::Expired };
                policy.ran(client, u64::MAX, stop, 0);
                let _ = policy.wake(client, u64::MAX);
                policy.set_share(client, share(1 << (round % 21)), 0);
            }
        }
    }
}

/// Several processors: a running client is not picked again, and equal shares get equal time.
#[test]
fn vtrr_3_two_processors_share_three_equal_clients_equally() {
    for name in FAIR {
        let setup = Setup { processors: 2, ..setup(3) };
        let mut policy = (by_name(name).expect("it is in the catalog").make)(&setup);
        for client in 0..3 {
            policy.add(client, 0, share(1), 0);
            let _ = policy.wake(client, 0);
        }
        let mut quanta = [0u32; 3];
        for round in 0..300u64 {
            let now = round * QUANTUM_NS;
            let picked = [0, 1].map(|processor| policy.pick(processor, now).expect("three are ready").client);
            assert_ne!(picked[0], picked[1], "{name}");
            for client in picked {
                quanta[client as usize] += 1;
                policy.ran(client, QUANTUM_NS, Stop::Expired, now + QUANTUM_NS);
            }
        }
        assert!(quanta.iter().all(|had| (199..=201).contains(had)), "{name}: {quanta:?}");
    }
}
