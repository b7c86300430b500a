//! Virtual-time round robin among clients that are all ready (VTRR paper, §3.1): the order of the
//! paper's example, its rules in fractions, the end of the cycle, service that is not a whole quantum.

use crate::common::plain::Policy;
use crate::reference::Fraction;
use mete_policy::{ClientId, Reset, Setup, Share, Stop, Vtrr};
use proptest::prelude::*;

fn with_shares<P: Policy>(mut policy: P, shares: &[u32]) -> P {
    for (client, &share) in (0..).zip(shares) {
        policy.add(client, 0, Share::new(share).expect("in range"), 0);
        let _ = policy.wake(client, 0);
    }
    policy
}

fn setup(shares: &[u32]) -> Setup {
    Setup::for_clients(shares.len() as u32)
}

/// The clients that run in that number of decisions of whole quanta.
fn order(policy: &mut impl Policy, decisions: usize) -> Vec<u32> {
    let run = |_| {
        let decision = policy.pick(0, 0).expect("all are ready");
        policy.ran(decision.client, decision.slice_ns, Stop::Expired, 0);
        decision.client
    };
    (0..decisions).map(run).collect()
}

/// The rules of the paper for a fixed set of clients, word for word. Virtual times are fractions that
/// only ever grow; a quantum is 1.
struct Paper {
    shares: Vec<i128>,
    /// The clients by share.
    queue: Vec<usize>,
    counters: Vec<i128>,
    /// Quanta that each client has had: VFT = (quanta + 1) / share.
    quanta: Vec<i128>,
    /// QVT, times the sum of the shares.
    queue_time: i128,
    current: Option<usize>,
}

impl Paper {
    fn new(shares: &[u32]) -> Paper {
        let shares: Vec<i128> = shares.iter().map(|&share| share.into()).collect();
        let mut queue: Vec<usize> = (0..shares.len()).collect();
        queue.sort_by_key(|&client| (-shares[client], client));
        let (counters, quanta) = (shares.clone(), vec![0; shares.len()]);
        Paper { shares, queue, counters, quanta, queue_time: 0, current: None }
    }

    fn decide(&mut self) -> u32 {
        let mut place = self.current.map_or(0, |place| self.behind(place));
        if self.counters.iter().all(|&counter| counter == 0) {
            self.counters.clone_from(&self.shares);
            place = 0;
        }
        let client = self.queue[place];
        self.counters[client] -= 1;
        self.quanta[client] += 1;
        self.queue_time += 1;
        self.current = Some(place);
        client as u32
    }

    fn behind(&self, place: usize) -> usize {
        let Some(&client) = self.queue.get(place + 1) else { return 0 };
        let violated = self.counters[client] > self.counters[self.queue[place]];
        if violated || self.inequality(client) { place + 1 } else { 0 }
    }

    fn inequality(&self, client: usize) -> bool {
        let finishing_time = Fraction(self.quanta[client] + 1, self.shares[client]);
        let queue_time = Fraction(self.queue_time + 1, self.shares.iter().sum());
        (finishing_time - queue_time).is_below(Fraction(1, self.shares[client]))
    }
}

/// Shares 3, 2 and 1 (§3.1). The first finishing times are 1/3, 1/2 and 1, and a quantum moves QVT by
/// 1/6. A runs; B: 1/2 - 2/6 < 1/2, runs; C: 1 - 3/6 < 1, runs; the queue's end, so A; B: 1 - 5/6 < 1/2,
/// runs; C: 2 - 6/6 is not below 1, so A. All counters are zero.
#[test]
fn vtrr_1_the_papers_example_runs_in_the_papers_order() {
    for policy in [Vtrr::new(&setup(&[3, 2, 1])), Vtrr::ranged(&setup(&[3, 2, 1]), Share::MAX)] {
        let mut policy = with_shares(policy, &[3, 2, 1]);
        assert_eq!(order(&mut policy, 12), [0, 1, 2, 0, 1, 0, 0, 1, 2, 0, 1, 0]);
    }
}

/// Shares 8, 2 and 1, of sum 11. B's second quantum (VFT 2/2) has to wait until QVT after it is above
/// 1 - 1/2: not yet 5/11, but 6/11.
#[test]
fn vtrr_1_the_head_runs_again_until_the_queue_has_caught_up() {
    let mut policy = with_shares(Vtrr::new(&setup(&[8, 2, 1])), &[8, 2, 1]);
    assert_eq!(order(&mut policy, 11), [0, 1, 2, 0, 0, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn vtrr_1_the_queue_is_sorted_by_share_and_equal_shares_by_number() {
    let policy = with_shares(Vtrr::new(&setup(&[2, 7, 2, 9, 7])), &[2, 7, 2, 9, 7]);
    let queue: Vec<_> = policy.run_queue().map(|(client, counter)| (client.get(), counter)).collect();
    assert_eq!(queue, [(3, 9), (1, 7), (4, 7), (0, 2), (2, 2)]);
}

#[test]
fn vtrr_1_one_client_has_every_quantum() {
    for share in [1, 1 << 20] {
        let mut policy = with_shares(Vtrr::new(&setup(&[share])), &[share]);
        assert_eq!(order(&mut policy, 50), [0; 50]);
    }
}

/// The large share runs in 2²⁰ of 2²⁰ + 2 quanta and takes none of the others'. The inequality is decided at
/// a difference of one part in 2⁴⁰.
#[test]
fn vtrr_1_a_share_larger_than_all_others_together_leaves_each_its_quantum() {
    let shares = [1, 1 << 20, 1];
    let mut policy = with_shares(Vtrr::new(&setup(&shares)), &shares);
    let cycle = order(&mut policy, (1 << 20) + 2);
    assert_eq!(cycle[..4], [1, 0, 2, 1]);
    assert!(cycle[3..].iter().all(|&client| client == 1));
    assert_eq!(order(&mut policy, 4), [1, 0, 2, 1], "the next cycle begins in the same way");
}

#[test]
fn vtrr_1_no_client_is_picked_when_all_are_blocked() {
    let mut policy = with_shares(Vtrr::new(&setup(&[5, 3])), &[5, 3]);
    for client in [0, 1] {
        assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(client));
        policy.ran(client, 1, Stop::Blocked, 0);
    }
    assert_eq!(policy.pick(0, 0), None);
    assert!(policy.queue_virtual_time().is_none());
}

fn shares(clients: usize) -> impl Strategy<Value = Vec<u32>> {
    let share = prop_oneof![1u32..=8, 1u32..=200, 1u32..=1 << 20];
    prop::collection::vec(share, 1..clients)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn vtrr_1_every_decision_is_that_of_the_papers_rules_in_fractions(shares in shares(80)) {
        let mut paper = Paper::new(&shares);
        let expected: Vec<u32> = (0..4_000).map(|_| paper.decide()).collect();
        for reset in [Reset::Incremental, Reset::AtOnce] {
            let mut policy = with_shares(Vtrr::new(&setup(&shares)).with_reset(reset), &shares);
            prop_assert_eq!(&order(&mut policy, 4_000), &expected);
        }
        let mut ranged = with_shares(Vtrr::ranged(&setup(&shares), Share::MAX), &shares);
        prop_assert_eq!(&order(&mut ranged, 4_000), &expected);
    }

    #[test]
    fn vtrr_1_every_client_has_its_share_at_the_end_of_a_cycle(
        shares in prop::collection::vec(1u32..=300, 1..60), cycles in 1usize..4
    ) {
        let mut policy = with_shares(Vtrr::new(&setup(&shares)), &shares);
        let total: u32 = shares.iter().sum();
        for _ in 0..cycles {
            let mut had = vec![0; shares.len()];
            order(&mut policy, total as usize).iter().for_each(|&client| had[client as usize] += 1);
            prop_assert_eq!(&had, &shares);
            prop_assert!(policy.run_queue().all(|(_, counter)| counter == 0));
        }
    }

    /// A client that was selected without need (not the head, and no larger counter than the client before)
    /// was behind the queue's virtual time.
    #[test]
    fn vtrr_1_a_client_that_follows_by_choice_satisfies_the_vft_inequality(shares in shares(40)) {
        let mut policy = with_shares(Vtrr::new(&setup(&shares)), &shares);
        let total: i128 = shares.iter().map(|&share| i128::from(share)).sum();
        let head = policy.run_queue().next().map(|(client, _)| client);
        let mut last_counter = 0;
        for _ in 0..1_000 {
            let queue_time = policy.queue_virtual_time().expect("the queue is not empty");
            let times: Vec<_> = (0..shares.len() as u32)
                .map(|client| policy.virtual_finishing_time(ClientId::new(client)).expect("it is there"))
                .collect();
            let counters: Vec<_> = (0..shares.len() as u32).map(|client| policy.counter(ClientId::new(client))).collect();
            let client = order(&mut policy, 1)[0];
            if Some(client) != head.map(ClientId::get) && counters[client as usize] <= Some(last_counter) {
                let share = i128::from(shares[client as usize]);
                let finishing = times[client as usize];
                let quantum = Fraction(1, total);
                let after = Fraction(
                    queue_time.numerator * quantum.1 + queue_time.denominator * quantum.0,
                    queue_time.denominator * quantum.1,
                );
                let difference = Fraction(finishing.numerator, finishing.denominator) - after;
                prop_assert!(difference.is_below(Fraction(1, share)));
            }
            last_counter = policy.counter(ClientId::new(client)).expect("it is there");
        }
    }

    /// In a cycle, a client may have its whole share early or late; the used part of a quantum is never lost.
    #[test]
    fn vtrr_1_used_parts_of_quanta_are_charged_to_the_nanosecond(
        shares in prop::collection::vec(1u32..=20, 2..12),
        parts in prop::collection::vec(1_000_000u64..=10_000_000, 12)
    ) {
        let mut policy = with_shares(Vtrr::new(&setup(&shares)), &shares);
        let mut served = vec![0u64; shares.len()];
        for _ in 0..5_000 {
            let client = policy.pick(0, 0).expect("all are ready").client;
            let ran_ns = parts[client as usize];
            policy.ran(client, ran_ns, Stop::Preempted, 0);
            served[client as usize] += ran_ns;
        }
        let (time_ns, total): (u64, u32) = (served.iter().sum(), shares.iter().sum());
        for (&had, &share) in served.iter().zip(&shares) {
            let ideal = time_ns * u64::from(share) / u64::from(total);
            let allowed = u64::from(share + 1) * 10_000_000;
            prop_assert!(had.abs_diff(ideal) <= allowed, "share {share}: {had} of {ideal} ns");
        }
    }
}
