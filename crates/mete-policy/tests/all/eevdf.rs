//! EEVDF: its schedule, its lag bound, lags that are kept over blocking, and the choice of its two heaps,
//! which is that of a search of all clients.

use crate::common::plain::Policy;
use crate::ideal::{Bench, EPSILON, QUANTUM_NS, setup, share};
use mete_policy::{Eevdf, Nanoseconds, Stop};
use proptest::prelude::*;

#[test]
fn vtrr_3_eevdf_interleaves_a_large_share_with_small_ones() {
    let mut shares = [1; 11];
    shares[0] = 10;
    let mut bench = Bench::new(Eevdf::new(&setup(11)), &shares);
    let expected: Vec<u32> = (1..=10).flat_map(|small| [0, small]).collect();
    for _ in 0..3 {
        assert_eq!(bench.quanta(20), expected);
    }
}

/// A client is half a quantum ahead when it blocks, and half a quantum ahead when it wakes.
#[test]
fn vtrr_3_eevdf_keeps_a_lead_over_blocking() {
    let mut bench = Bench::new(Eevdf::new(&setup(2)), &[1, 1]);
    assert_eq!(bench.run(255, Stop::Blocked), Some(0));
    assert_eq!(bench.quanta(1000), [1; 1000]);
    bench.wake(0);
    assert_eq!(bench.quanta(6), [1, 0, 1, 0, 1, 0]);
}

/// A client that was behind goes first on its return, and then is level: sleeping added nothing.
#[test]
fn vtrr_3_eevdf_keeps_a_lag_over_blocking_and_lets_it_not_grow() {
    let mut bench = Bench::new(Eevdf::new(&setup(3)), &[1, 1, 1]);
    assert_eq!(bench.quanta(2), [0, 1]);
    assert_eq!(bench.run(63, Stop::Blocked), Some(2), "it had a quarter of a quantum, and is owed a half");
    assert_eq!(bench.quanta(1000), [0, 1].repeat(500));
    bench.wake(2);
    assert_eq!(bench.quanta(7), [2, 0, 1, 2, 0, 1, 2]);
}

/// Client 1 wakes when client 0 has used half a quantum: the mean of 0 and 2 is a quarter of a quantum then,
/// so that 2, which has waited from the beginning, comes before it.
#[test]
fn vtrr_3_eevdf_lets_virtual_time_go_on_while_a_quantum_is_used() {
    let mut policy = Eevdf::new(&setup(3));
    (0..3).for_each(|client| policy.add(client, 0, share(1), 0));
    let _ = (policy.wake(0, 0), policy.wake(2, 0));
    assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(0));
    let _ = policy.wake(1, QUANTUM_NS / 2);
    policy.ran(0, QUANTUM_NS, Stop::Expired, QUANTUM_NS);
    assert_eq!(policy.pick(0, QUANTUM_NS).map(|decision| decision.client), Some(2));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Wake(u32),
    Remove(u32),
    Share(u32, usize),
    /// The next client runs for that number of 12 parts of a slice, and blocks then or not.
    Run(u64, bool),
}

const CLIENTS: u32 = 10;
/// Divisors of 12: with parts of twelfths, no division leaves a remainder.
const SHARES: [u32; 6] = [1, 2, 3, 4, 6, 12];
const SLICE_NS: u64 = 12 * 144_000;

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    prop_oneof![
        3 => client.clone().prop_map(Step::Wake),
        1 => client.clone().prop_map(Step::Remove),
        1 => (client, 0..SHARES.len()).prop_map(|(client, share)| Step::Share(client, share)),
        6 => (1u64..=12, prop::bool::weighted(0.3)).prop_map(|(parts, block)| Step::Run(parts, block)),
    ]
}

/// A client as the source defines it. Times in 2⁻²⁴ ns, as the policy rounds them.
#[derive(Clone, Copy)]
struct Client {
    share: i128,
    time: i128,
    /// Its lead when it left.
    lead: i128,
    competes: bool,
}

/// The source's algorithm without its data structure: every decision looks at every client.
struct Search {
    clients: [Client; CLIENTS as usize],
    /// The mean when the last client left.
    left_at: i128,
}

impl Search {
    fn competing(&self) -> impl Iterator<Item = (usize, &Client)> {
        self.clients.iter().enumerate().filter(|(_, client)| client.competes)
    }

    /// The mean virtual time, weighted by shares.
    fn mean(&self) -> i128 {
        let shares: i128 = self.competing().map(|(_, client)| client.share).sum();
        let sum: i128 = self.competing().map(|(_, client)| client.share * client.time).sum();
        if shares == 0 { self.left_at } else { sum.div_euclid(shares) }
    }

    fn pick(&self) -> Option<usize> {
        let mean = self.mean();
        let eligible = self.competing().filter(|(_, client)| client.time <= mean);
        let deadline = |client: &Client| client.time + in_units(SLICE_NS) / client.share;
        eligible.min_by_key(|&(number, client)| (deadline(client), number)).map(|(number, _)| number)
    }

    fn leave(&mut self, number: usize) {
        self.left_at = self.mean();
        let client = &mut self.clients[number];
        client.lead = (client.time - self.left_at).max(-in_units(SLICE_NS) / client.share);
        client.competes = false;
        if self.competing().next().is_some() {
            self.left_at = self.mean();
        }
    }
}

fn in_units(ns: u64) -> i128 {
    i128::from(ns) << 24
}

/// Carries out one step in both; answers the clients that both chose, if it was a decision.
fn take(policy: &mut Eevdf, search: &mut Search, step: Step) -> Option<(Option<u32>, Option<u32>)> {
    match step {
        Step::Wake(number) => wake(policy, search, number),
        Step::Remove(number) => {
            policy.remove(number, 0);
            search.leave(number as usize);
            let client = &mut search.clients[number as usize];
            client.lead = 0;
            policy.add(number, 0, share(client.share as u32), 0);
        }
        Step::Share(number, which) => set_share(policy, search, number, SHARES[which]),
        Step::Run(parts, block) => return Some(run(policy, search, parts, block)),
    }
    None
}

fn wake(policy: &mut Eevdf, search: &mut Search, number: u32) {
    let _ = policy.wake(number, 0);
    let mean = search.mean();
    let client = &mut search.clients[number as usize];
    if !client.competes {
        client.time = mean + client.lead;
        client.competes = true;
    }
}

fn set_share(policy: &mut Eevdf, search: &mut Search, number: u32, weight: u32) {
    policy.set_share(number, share(weight), 0);
    let mean = search.mean();
    let client = &mut search.clients[number as usize];
    let rescaled = |lead: i128| lead * client.share / i128::from(weight);
    client.time = mean + rescaled(client.time - mean);
    client.lead = rescaled(client.lead);
    client.share = weight.into();
}

fn run(policy: &mut Eevdf, search: &mut Search, parts: u64, block: bool) -> (Option<u32>, Option<u32>) {
    let chosen = search.pick();
    let decision = policy.pick(0, 0).map(|decision| decision.client);
    let ran_ns = SLICE_NS / 12 * parts;
    if let (Some(number), Some(client)) = (chosen, decision) {
        let stop = if block { Stop::Blocked } else { Stop::Preempted };
        policy.ran(client, ran_ns, stop, 0);
        let served = &mut search.clients[number];
        served.time += in_units(ran_ns) / served.share;
        if block {
            search.leave(number);
        }
    }
    (chosen.map(|number| number as u32), decision)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The source's theorem for a steady system; newcomers join without a lag.
    #[test]
    fn vtrr_3_eevdf_keeps_every_lag_below_a_quantum(
        shares in prop::collection::vec(1u32..=100, 1..20),
        history in prop::collection::vec((any::<u8>(), 0u8..8), 1..600),
    ) {
        let mut bench = Bench::new(Eevdf::new(&setup(20)), &shares[..1]);
        let mut coming = (1..).zip(&shares[1..]);
        for (used, dice) in history {
            if dice == 0 {
                for (client, &share) in coming.by_ref().take(1) {
                    bench.add(client, share);
                    bench.wake(client);
                }
            }
            bench.run(if dice > 4 { 255 } else { used }, Stop::Preempted);
            let (behind, ahead) = bench.errors();
            prop_assert!(behind > -1.0 - EPSILON && ahead < 1.0 + EPSILON, "{behind} to {ahead}");
        }
    }

    /// Whichever clients join, leave with a lag, or change their shares: the schedule is that of the source's
    /// definition, and at least one client is always eligible.
    #[test]
    fn vtrr_3_eevdf_chooses_as_a_search_of_all_clients(history in prop::collection::vec(step(), 1..600)) {
        let mut policy = Eevdf::new(&mete_policy::Setup { quantum_ns: Nanoseconds::new(SLICE_NS), ..setup(CLIENTS) });
        let absent = Client { share: 1, time: 0, lead: 0, competes: false };
        let mut search = Search { clients: [absent; CLIENTS as usize], left_at: 0 };
        (0..CLIENTS).for_each(|client| policy.add(client, 0, share(1), 0));
        for step in history {
            let competing = search.competing().next().is_some();
            let Some((expected, chosen)) = take(&mut policy, &mut search, step) else { continue };
            prop_assert_eq!(expected, chosen);
            prop_assert_eq!(chosen.is_some(), competing);
        }
    }
}

#[test]
fn vtrr_3_an_eevdf_client_that_sleeps_for_ever_is_owed_a_quantum_at_most() {
    let mut policy = Eevdf::new(&setup(2));
    for client in 0..2 {
        policy.add(client, 0, share(1), 0);
        let _ = policy.wake(client, 0);
    }
    // Ten quanta at once, by an owner that was late: the other client is five behind.
    let mut run = |ran_ns, stop| {
        let client = policy.pick(0, 0).expect("a client is ready").client;
        policy.ran(client, ran_ns, stop, 0);
        if stop == Stop::Blocked {
            let _ = policy.wake(client, 0);
        }
        client
    };
    assert_eq!(run(10 * QUANTUM_NS, Stop::Expired), 0);
    assert_eq!(run(0, Stop::Blocked), 1);
    let after: Vec<u32> = (0..6).map(|_| run(QUANTUM_NS, Stop::Expired)).collect();
    assert_eq!(after, [1, 0, 1, 0, 1, 0], "one quantum of the five is left");
}
