//! Group virtual-time round robin: domains have their shares, whichever clients are in them.

use crate::common::plain::Policy;
use mete_policy::{GroupVtrr, Setup, Share, Stop, by_name};
use proptest::prelude::*;

const QUANTUM_NS: u64 = 10_000_000;

fn share(weight: u32) -> Share {
    Share::new(weight).expect("in range")
}

fn setup(clients: u32, domains: u16) -> Setup {
    Setup { domains, ..Setup::for_clients(clients) }
}

fn start(policy: &mut GroupVtrr, client: u32, domain: u16, weight: u32) {
    policy.add(client, domain, share(weight), 0);
    let _ = policy.wake(client, 0);
}

/// The clients that run in that number of decisions of whole quanta.
fn order(policy: &mut (impl Policy + ?Sized), decisions: usize) -> Vec<u32> {
    let run = |_| {
        let decision = policy.pick(0, 0).expect("all are ready");
        policy.ran(decision.client, decision.slice_ns, Stop::Expired, 0);
        decision.client
    };
    (0..decisions).map(run).collect()
}

fn count(order: &[u32], clients: std::ops::Range<u32>) -> usize {
    order.iter().filter(|client| clients.contains(client)).count()
}

#[test]
fn vtrr_7_a_domains_share_does_not_grow_with_its_number_of_tasks() {
    for tasks in [1, 2, 10, 100] {
        let mut policy = GroupVtrr::new(&setup(1 + tasks, 3));
        policy.add_domain(1, 0, share(3));
        policy.add_domain(2, 0, share(2));
        start(&mut policy, 0, 1, 1);
        (1..=tasks).for_each(|client| start(&mut policy, client, 2, 1));
        let order = order(&mut policy, 1000);
        assert_eq!(count(&order, 0..1), 600, "3 of 5 beside {tasks} tasks");
        for client in 1..=tasks {
            assert_eq!(count(&order, client..client + 1), 400 / tasks as usize);
        }
    }
}

/// The paper's order for shares 3, 2 and 1 (§3.1), with domains in the place of clients.
#[test]
fn vtrr_7_domains_take_turns_in_the_papers_order() {
    let mut policy = GroupVtrr::new(&setup(6, 4));
    for domain in 1..=3 {
        policy.add_domain(domain, 0, share(4 - u32::from(domain)));
    }
    for client in 0..6 {
        start(&mut policy, client, 1 + (client / 2) as u16, 1);
    }
    assert_eq!(order(&mut policy, 12), [0, 2, 4, 1, 3, 0, 1, 2, 5, 0, 3, 1]);
}

#[test]
fn vtrr_7_domains_nest() {
    let mut policy = GroupVtrr::new(&setup(4, 4));
    policy.add_domain(1, 0, share(1));
    policy.add_domain(2, 1, share(2));
    policy.add_domain(3, 1, share(1));
    start(&mut policy, 0, 0, 1);
    start(&mut policy, 1, 2, 5);
    start(&mut policy, 2, 3, 7);
    start(&mut policy, 3, 3, 7);
    let order = order(&mut policy, 1200);
    let counts = [0, 1, 2, 3].map(|client| count(&order, client..client + 1));
    assert_eq!(counts, [600, 400, 100, 100]);
}

#[test]
fn vtrr_7_the_time_that_a_sleeping_domain_leaves_goes_to_the_others_of_its_parent() {
    let mut policy = GroupVtrr::new(&setup(3, 4));
    policy.add_domain(1, 0, share(1));
    policy.add_domain(2, 1, share(1));
    policy.add_domain(3, 1, share(1));
    start(&mut policy, 0, 0, 1);
    start(&mut policy, 1, 2, 1);
    start(&mut policy, 2, 3, 1);
    while let Some(decision) = policy.pick(0, 0) {
        let sleeps = decision.client == 2;
        policy.ran(2, QUANTUM_NS, if sleeps { Stop::Blocked } else { Stop::Expired }, 0);
        policy.ran(decision.client, QUANTUM_NS, Stop::Expired, 0);
        if sleeps {
            break;
        }
    }
    let awake = order(&mut policy, 1000);
    assert_eq!((count(&awake, 2..3), count(&awake, 0..1).abs_diff(500) <= 1), (0, true));
    let _ = policy.wake(2, 0);
    let all = order(&mut policy, 1000);
    assert!(count(&all, 0..1).abs_diff(500) <= 1 && count(&all, 1..2).abs_diff(250) <= 1);
}

#[test]
fn vtrr_7_a_domains_share_can_change_while_it_runs() {
    let mut policy = GroupVtrr::new(&setup(2, 3));
    policy.add_domain(1, 0, share(1));
    policy.add_domain(2, 0, share(1));
    start(&mut policy, 0, 1, 1);
    start(&mut policy, 1, 2, 1);
    let running = policy.pick(0, 0).expect("two are ready");
    policy.set_domain_share(1, share(4), 0);
    policy.ran(running.client, QUANTUM_NS, Stop::Expired, 0);
    let order = order(&mut policy, 1000);
    assert!(count(&order, 0..1).abs_diff(800) <= 4, "{}", count(&order, 0..1));
}

/// Shares are weights of hundreds, so a cycle has hundreds of quanta.
#[test]
fn vtrr_7_another_share_counts_at_once_and_not_only_in_the_next_cycle() {
    let mut policy = GroupVtrr::new(&setup(5, 6));
    for domain in 1..6 {
        policy.add_domain(domain, 0, share(100));
        start(&mut policy, u32::from(domain) - 1, domain, 1);
    }
    order(&mut policy, 137);
    (1..6).for_each(|domain| policy.set_domain_share(domain, share(100 * u32::from(domain)), 0));
    for _ in 0..8 {
        let order = order(&mut policy, 300);
        for client in 0..5 {
            let (had, due) = (count(&order, client..client + 1), 20 * (client as usize + 1));
            assert!(had.abs_diff(due) <= 3, "client {client} had {had} and not {due}");
        }
    }
}

#[test]
fn vtrr_7_a_client_of_an_unknown_domain_is_the_roots() {
    let mut policy = GroupVtrr::new(&setup(2, 3));
    start(&mut policy, 0, 2, 3);
    policy.add_domain(2, 1, share(1));
    policy.add_domain(2, 2, share(1));
    start(&mut policy, 1, 2, 1);
    assert_eq!(count(&order(&mut policy, 400), 0..1), 300, "3 beside the domain's 1");
}

#[test]
fn vtrr_7_a_domain_goes_on_with_the_quantum_that_its_member_left_unfinished() {
    let mut policy = GroupVtrr::new(&setup(3, 3));
    policy.add_domain(1, 0, share(2));
    policy.add_domain(2, 0, share(1));
    (0..2).for_each(|client| start(&mut policy, client, 1, 1));
    start(&mut policy, 2, 2, 1);
    let first = policy.pick(0, 0).expect("all are ready").client;
    policy.ran(first, QUANTUM_NS / 2, Stop::Blocked, 0);
    assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(1 - first));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Each domain of the root has its part of all cycles to within its share and a quantum, whatever the
    /// clients in it do with whole quanta: block, and wake after a number of decisions.
    #[test]
    fn vtrr_7_busy_domains_have_their_shares_whatever_their_clients_do(
        shares in prop::collection::vec(1u32..=8, 2..5),
        blocks in prop::collection::vec((0u32..4, any::<bool>()), 1..400),
    ) {
        let domains = shares.len() as u32;
        let mut policy = GroupVtrr::new(&setup(domains * 4, domains as u16 + 1));
        for (domain, &weight) in (1..).zip(&shares) {
            policy.add_domain(domain, 0, share(weight));
            (0..4).for_each(|task| start(&mut policy, (u32::from(domain) - 1) * 4 + task, domain, 1 + task));
        }
        let mut served = vec![0u32; shares.len()];
        for &(task, blocked) in &blocks {
            let client = policy.pick(0, 0).expect("the first of each domain is ready").client;
            // The first task of each domain never blocks, so the domain is always in the queue.
            let stop = if blocked && !client.is_multiple_of(4) { Stop::Blocked } else { Stop::Expired };
            policy.ran(client, QUANTUM_NS, stop, 0);
            served[client as usize / 4] += 1;
            let _ = policy.wake(client / 4 * 4 + task, 0);
        }
        let (time, total) = (blocks.len() as u32, shares.iter().sum::<u32>());
        let rest = time % total;
        for (&had, &share) in served.iter().zip(&shares) {
            prop_assert!(had >= time / total * share && had <= time / total * share + share.min(rest));
        }
    }
}

/// Client 0 runs while the root's cycles end, so the root owes it something; then it is in a domain.
#[test]
fn vtrr_7_a_client_that_has_gone_to_another_domain_is_selected_only_there() {
    let mut policy = GroupVtrr::new(&Setup { processors: 3, ..setup(2, 2) });
    policy.add_domain(1, 0, share(37));
    let pick = |policy: &mut GroupVtrr, processor| policy.pick(processor, 0).map(|decision| decision.client);
    start(&mut policy, 0, 0, 12);
    start(&mut policy, 1, 0, 1);
    assert_eq!(pick(&mut policy, 0), Some(0));
    for _ in 0..3 {
        assert_eq!(pick(&mut policy, 1), Some(1));
        policy.ran(1, QUANTUM_NS, Stop::Expired, 0);
    }
    policy.remove(0, 0);
    start(&mut policy, 0, 1, 151);
    assert_eq!(pick(&mut policy, 1), Some(0), "the larger share is first");
    policy.ran(0, 0, Stop::Blocked, 0);
    assert_eq!(pick(&mut policy, 1), Some(1));
    let _ = policy.wake(0, 0);
    assert_eq!(pick(&mut policy, 2), Some(0));
}

/// Domain 2 is in domain 1 first, then, after it was removed, in the root, beside it. The other domain goes on all the
/// time.
#[test]
fn vtrr_7_a_domain_that_was_removed_may_come_again_inside_another_one() {
    for name in ["group-vtrr", "distributed-vtrr", "distributed-vtrr-kernel"] {
        let make = by_name(name).expect("it is in the catalogue").make;
        comes_again(name, make(&setup(3, 4)).as_mut());
    }
}

fn comes_again(name: &str, policy: &mut (impl Policy + ?Sized)) {
    for (domain, parent) in [(1, 0), (3, 1), (2, 1)] {
        policy.add_domain(domain, parent, share(1));
    }
    for (client, domain) in [(0, 0), (1, 3), (2, 2)] {
        policy.add(client, domain, share(1), 0);
        let _ = policy.wake(client, 0);
    }
    let near = |order: &[u32], wanted: [usize; 3]| {
        let counts = [0, 1, 2].map(|client| count(order, client..client + 1));
        let is_near = counts.iter().zip(wanted).all(|(count, wanted)| count.abs_diff(wanted) <= 4);
        assert!(is_near, "{name}: {counts:?} and not {wanted:?}");
    };
    near(&order(policy, 1200), [600, 300, 300]);
    // Neither has gone: one has a domain in it, the other one a client that can run.
    policy.remove_domain(1);
    policy.remove_domain(2);
    policy.add_domain(2, 0, share(1));
    near(&order(policy, 1200), [600, 300, 300]);
    policy.remove(2, 0);
    policy.remove_domain(2);
    policy.add_domain(2, 0, share(1));
    policy.add(2, 2, share(1), 0);
    let _ = policy.wake(2, 0);
    near(&order(policy, 1200), [400, 400, 400]);
}
