//! Distributed group virtual-time round robin: shares hold across processors that have queues of their own.

mod common;

use common::feasible::feasible;
use common::plain::Policy;
use common::{Step, World, steps, wild_steps};
use mete_policy::{ClientId, DistributedVtrr, Nanoseconds, Setup, Share, Stop};
use proptest::prelude::*;

const QUANTUM_NS: u64 = 1_000_000;

fn share(weight: u32) -> Share {
    Share::new(weight).expect("in range")
}

fn setup(clients: u32, domains: u16, processors: u16) -> Setup {
    let quantum_ns = Nanoseconds::new(QUANTUM_NS);
    Setup { domains, processors, quantum_ns, ..Setup::for_clients(clients) }
}

/// A machine on which every client computes all the time.
struct Machine {
    policy: DistributedVtrr,
    processors: u16,
    /// Quanta that each client has had.
    had: Vec<u64>,
}

impl Machine {
    /// With a domain for each list of clients, and the domain's share in front of it.
    fn new(processors: u16, domains: &[(u32, &[u32])]) -> Machine {
        let clients = domains.iter().map(|(_, clients)| clients.len()).sum::<usize>();
        let setup = setup(clients as u32, 1 + domains.len() as u16, processors);
        let mut policy = DistributedVtrr::new(&setup);
        let mut client = 0;
        for (domain, (weight, weights)) in (1..).zip(domains) {
            policy.add_domain(domain, 0, share(*weight));
            for weight in *weights {
                policy.add(client, domain, share(*weight), 0);
                let _ = policy.wake(client, 0);
                client += 1;
            }
        }
        Machine { policy, processors, had: vec![0; clients] }
    }

    /// Each processor takes a quantum at a time, all at the same moments.
    fn run(&mut self, quanta: u64) {
        for _ in 0..quanta {
            let picked: Vec<_> =
                (0..self.processors).filter_map(|processor| self.policy.pick(processor, 0)).collect();
            assert_eq!(
                picked.len(),
                self.had.len().min(self.processors.into()),
                "no processor is idle without need"
            );
            for decision in picked {
                self.policy.ran(decision.client, decision.slice_ns, Stop::Expired, 0);
                self.had[decision.client as usize] += 1;
            }
        }
    }

    fn had_by(&self, clients: std::ops::Range<usize>) -> u64 {
        self.had[clients].iter().sum()
    }
}

/// Whether two numbers of quanta differ by no more than `most`.
fn near(found: u64, expected: u64, most: u64) -> bool {
    found.abs_diff(expected) <= most
}

#[test]
fn vtrr_7_a_domains_share_holds_across_processors_whatever_its_number_of_tasks() {
    for processors in [1, 2, 4, 8, 16] {
        let few = vec![1; usize::from(processors)];
        let many = vec![1; 10 * usize::from(processors)];
        let mut machine = Machine::new(processors, &[(200, &few), (100, &many)]);
        machine.run(3000);
        let all = 3000 * u64::from(processors);
        let (few, quanta) = (machine.had_by(0..few.len()), 4 * u64::from(processors));
        assert!(near(few, all * 2 / 3, quanta), "{few} of {all} on {processors}");
    }
}

#[test]
fn vtrr_7_tasks_of_a_domain_share_across_processors_by_their_weights() {
    let mut machine = Machine::new(2, &[(100, &[1; 21]), (100, &[1, 2, 3])]);
    machine.run(6300);
    for client in 0..21 {
        assert!(near(machine.had[client], 300, 8), "{:?}", machine.had);
    }
    // Half of two processors is one: 1, 2 and 3 of 6 of it.
    let expected = [1050, 2100, 3150];
    assert!((0..3).all(|nth| near(machine.had[21 + nth], expected[nth], 12)), "{:?}", machine.had);
}

#[test]
fn vtrr_7_what_a_domain_cannot_use_is_divided_by_the_others_by_their_shares() {
    // Of two processors the first domain is due two thirds, but its only task can use one.
    let mut machine = Machine::new(2, &[(600, &[1]), (200, &[1; 5]), (100, &[1; 5])]);
    machine.run(6000);
    let had = [machine.had_by(0..1), machine.had_by(1..6), machine.had_by(6..11)];
    let expected = [6000, 4000, 2000];
    assert!((0..3).all(|nth| near(had[nth], expected[nth], 12)), "{had:?}");
}

#[test]
fn vtrr_7_ten_domains_with_tasks_against_their_weights_have_their_shares() {
    let tasks: Vec<Vec<u32>> = (1..=10).map(|nth| vec![1; 22 - 2 * nth]).collect();
    let domains: Vec<(u32, &[u32])> = (1..).zip(&tasks).map(|(nth, tasks)| (100 * nth, &tasks[..])).collect();
    for processors in [1, 2] {
        let mut machine = Machine::new(processors, &domains);
        let quanta = 5500;
        machine.run(quanta);
        let mut first = 0;
        for (nth, tasks) in (1..).zip(&tasks) {
            let had = machine.had_by(first..first + tasks.len());
            first += tasks.len();
            let due = quanta * u64::from(processors) * nth / 55;
            assert!(near(had, due, 8), "domain {nth} on {processors}: {had}, due {due}");
        }
    }
}

/// How far clients with shares 1 to 5 are from their shares in any stretch of a thousand quanta.
#[test]
fn vtrr_7_in_no_stretch_of_time_is_a_client_two_quanta_from_its_share() {
    let mut machine = Machine::new(1, &[(1, &[1, 2, 3, 4, 5])]);
    let mut passed: Vec<Vec<u64>> = Vec::new();
    for _ in 0..5000 {
        passed.push(machine.had.clone());
        machine.run(1);
    }
    for (before, after) in passed.iter().zip(passed.iter().skip(1000)) {
        for client in 0..5 {
            let (had, due) = ((after[client] - before[client]) as f64, 1000.0 * (client + 1) as f64 / 15.0);
            assert!((had - due).abs() < 2.0, "client {client} had {had}, due {due}");
        }
    }
}

#[test]
fn vtrr_7_what_was_had_far_too_much_is_not_made_up_for() {
    let setup = Setup { quantum_ns: Nanoseconds::new(QUANTUM_NS), ..Setup::for_clients(2) };
    let mut policy = DistributedVtrr::new(&setup);
    for client in [0, 1] {
        Policy::add(&mut policy, client, 0, Share::ONE, 0);
        let _ = Policy::wake(&mut policy, client, 0);
    }
    let mut turn = |ran_ns| {
        let client = Policy::pick(&mut policy, 0, 0).unwrap().client;
        Policy::ran(&mut policy, client, ran_ns, Stop::Expired, 0);
        client
    };
    // It was not stopped for 10,000 quanta, and the other one makes up for 256 of them.
    let late = turn(10_000 * QUANTUM_NS);
    let others = (0..1000).take_while(|_| turn(QUANTUM_NS) != late).count();
    assert!((250..=260).contains(&others), "{others} quanta in a row");
}

#[test]
fn vtrr_7_a_thousand_domains_have_the_same() {
    let tasks = [1; 3];
    let domains: Vec<(u32, &[u32])> = (0..1000).map(|_| (100, &tasks[..])).collect();
    let mut machine = Machine::new(2, &domains);
    machine.run(10_000);
    for domain in 0..1000 {
        let had = machine.had_by(3 * domain..3 * domain + 3);
        assert!(near(had, 20, 2), "domain {domain} had {had}");
    }
}

impl Machine {
    /// The same; each client may run on the processors of a mask only.
    fn with_masks(processors: u16, domains: &[(u32, &[u32])], masks: &[u64]) -> Machine {
        let mut machine = Machine::new(processors, domains);
        for (client, mask) in (0..).zip(masks) {
            machine.policy.remove(client, 0);
            machine.policy.set_allowed(ClientId::new(client), *mask);
        }
        let mut client = 0;
        for (domain, (_, weights)) in (1..).zip(domains) {
            for weight in *weights {
                machine.policy.add(client, domain, share(*weight), 0);
                let _ = machine.policy.wake(client, 0);
                client += 1;
            }
        }
        machine
    }
}

#[test]
fn vtrr_7_domains_that_are_bound_to_one_processor_have_their_shares_of_it() {
    let domains: [(u32, &[u32]); 3] = [(200, &[1]), (100, &[1; 5]), (100, &[1])];
    let mut machine = Machine::with_masks(2, &domains, &[1, 1, 1, 1, 1, 1, 2]);
    machine.run(6000);
    let had = [machine.had_by(0..1), machine.had_by(1..6), machine.had_by(6..7)];
    assert!(near(had[0], 4000, 8) && near(had[1], 2000, 8) && near(had[2], 6000, 8), "{had:?}");
}

#[test]
fn vtrr_7_clients_bound_to_different_processors_divide_each_by_their_shares() {
    let mut machine = Machine::with_masks(2, &[(1, &[1, 3, 20, 30, 50])], &[1, 1, 2, 2, 2]);
    machine.run(6000);
    let expected = [1500, 4500, 1200, 1800, 3000];
    assert!(machine.had.iter().zip(expected).all(|(had, due)| near(*had, due, 12)), "{:?}", machine.had);
}

#[test]
fn vtrr_7_what_is_bound_to_one_processor_is_not_displaced_by_what_may_run_elsewhere() {
    let mut machine = Machine::with_masks(2, &[(100, &[1]), (100, &[1; 4])], &[1, 3, 3, 3, 3]);
    machine.run(6000);
    let had = [machine.had_by(0..1), machine.had_by(1..5)];
    assert!(near(had[0], 6000, 60) && near(had[1], 6000, 60), "{had:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The world's own books say which clients are ready; it asserts at each step that the policy agrees.
    #[test]
    fn new_1_the_distributed_policy_picks_ready_clients_and_no_others(history in steps(500)) {
        let setup = common::setup();
        let mut world = World::with(Box::new(DistributedVtrr::new(&setup)), setup);
        history.iter().for_each(|step| world.take(step));
    }

    #[test]
    fn new_1_no_time_makes_the_distributed_policy_panic_or_pick_wrongly(
        history in wild_steps(400),
        quantum_ns in prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>(), Just(1_000_000)],
    ) {
        let setup = Setup { quantum_ns: Nanoseconds::new(quantum_ns), ..common::setup() };
        let mut world = World::with(Box::new(DistributedVtrr::new(&setup)), setup);
        history.iter().for_each(|step| world.take(step));
    }

    #[test]
    fn new_1_a_decision_that_is_given_back_is_made_again_by_the_distributed_policy(history in steps(200)) {
        let setup = common::setup();
        let mut world = World::with(Box::new(DistributedVtrr::new(&setup)), setup);
        history.iter().for_each(|step| world.take(step));
        world.take(&Step::Pick(0));
        let decided = *world.answers.last().expect("an answer");
        if decided != common::world::Answer::Pick(None) {
            world.take(&Step::GiveBack(0));
            world.take(&Step::Pick(0));
            prop_assert_eq!(*world.answers.last().expect("an answer"), decided);
        }
    }

    /// Any shares on any number of processors: each client has what is feasible.
    #[test]
    fn vtrr_7_clients_have_their_feasible_shares(weights in prop::collection::vec(1..100_u32, 2..12), processors in 1..6_u16) {
        let mut machine = Machine::new(processors, &[(1, &weights)]);
        let quanta = 10_000;
        machine.run(quanta);
        let feasible = feasible(&weights, processors.min(weights.len() as u16));
        for (client, part) in feasible.iter().enumerate() {
            let (had, due) = (machine.had[client], part * quanta as f64);
            prop_assert!((had as f64 - due).abs() < 20.0, "{client}: {had}, due {due}, {weights:?}");
        }
    }
}
