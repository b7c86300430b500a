//! Virtual-time round robin while clients come and go (VTRR paper, §3.2): every answer is compared with
//! that of a model in fractions (`reference`), over random histories.

use std::cmp::Reverse;

use crate::common::plain::Policy;
use crate::reference::{Fraction, Model};
use mete_policy::{ClientId, Nanoseconds, Reset, Setup, Share, Stop, Vtrr};
use proptest::prelude::*;

const CLIENTS: u32 = 150;
const QUANTUM_NS: u64 = 1000;

#[derive(Clone, Debug)]
enum Step {
    Arrive(u32, u32),
    Remove(u32),
    Share(u32, u32),
    Wake(u32),
    /// That number of decisions at once; then each of these clients stops.
    Decide(u8, u64, Stop),
    /// A decision. In the middle of its quantum, after the first time, another client comes or has a new
    /// share; then the running one stops after the second time.
    Meanwhile(u64, Box<Step>, u64, Stop),
}

fn share() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1u32..=5, 2 => 1u32..=1000, 1 => Just(1 << 20)]
}

fn used_ns() -> impl Strategy<Value = u64> {
    prop_oneof![6 => Just(QUANTUM_NS), 1 => Just(0), 3 => 0..QUANTUM_NS, 1 => QUANTUM_NS..5 * QUANTUM_NS]
}

fn stop() -> impl Strategy<Value = Stop> {
    prop_oneof![
        4 => Just(Stop::Expired),
        3 => Just(Stop::Blocked),
        1 => Just(Stop::Yielded),
        1 => Just(Stop::Preempted)
    ]
}

fn meanwhile(clients: u32) -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..clients, share()).prop_map(|(client, share)| Step::Arrive(client, share)),
        (0..clients, share()).prop_map(|(client, share)| Step::Share(client, share)),
        (0..clients).prop_map(Step::Wake),
    ]
}

fn steps(clients: u32, used: impl Strategy<Value = u64>) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..clients, share()).prop_map(|(client, share)| Step::Arrive(client, share)),
        1 => (0..clients).prop_map(Step::Remove),
        1 => (0..clients, share()).prop_map(|(client, share)| Step::Share(client, share)),
        6 => (0..clients).prop_map(Step::Wake),
        10 => (1u8..=3, used, stop()).prop_map(|(count, used, stop)| Step::Decide(count, used, stop)),
        4 => (0..=QUANTUM_NS, meanwhile(clients), 0..=QUANTUM_NS, stop())
            .prop_map(|(after, step, used, stop)| Step::Meanwhile(after, Box::new(step), used, stop)),
    ];
    prop::collection::vec(step, 1..600)
}

/// The policy and the model, with the same calls.
struct Pair {
    policy: Vtrr,
    model: Model,
    shares: Vec<Option<u32>>,
    now: u64,
    /// What the client that runs has not used yet of its quantum.
    unused_ns: i128,
    /// The key that the current client had when it was selected.
    last: Option<(Reverse<Option<u32>>, u32)>,
}

impl Pair {
    fn new(policy: Vtrr) -> Pair {
        let shares = vec![None; CLIENTS as usize];
        Pair { policy, model: Model::new(QUANTUM_NS), shares, now: 0, unused_ns: 0, last: None }
    }

    fn queued(&self, client: u32) -> bool {
        self.model.queue.iter().any(|queued| queued.id == client)
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Arrive(client, weight) => {
                if self.shares[client as usize].is_none() {
                    self.policy.add(client, 0, Share::new(weight).expect("in range"), self.now);
                    self.shares[client as usize] = Some(weight);
                }
                self.wake(client);
            }
            Step::Remove(client) => {
                self.policy.remove(client, self.now);
                self.model.forget(client);
                self.shares[client as usize] = None;
            }
            Step::Share(client, weight) => self.set_share(client, weight),
            Step::Wake(client) => self.wake(client),
            Step::Decide(count, used_ns, stop) => self.decide(count, used_ns, stop),
            Step::Meanwhile(after_ns, ref step, used_ns, stop) => {
                self.meanwhile(after_ns, step, used_ns, stop)
            }
        }
    }

    /// An arrival while a client runs sees what that client has used of its quantum, whatever it will use in
    /// the end.
    fn meanwhile(&mut self, after_ns: u64, step: &Step, used_ns: u64, stop: Stop) {
        let picked = self.pick(1);
        let is_other = |client| !picked.contains(&client);
        if let Step::Arrive(client, _) | Step::Wake(client) | Step::Share(client, _) = *step
            && is_other(client)
        {
            self.now += after_ns;
            self.unused_ns = i128::from(QUANTUM_NS - after_ns) * picked.len() as i128;
            self.take(step);
            self.unused_ns = 0;
        }
        self.stop(picked, used_ns, stop);
    }

    fn wake(&mut self, client: u32) {
        assert_eq!(self.policy.wake(client, self.now), None);
        if let Some(share) = self.shares[client as usize].filter(|_| !self.queued(client)) {
            self.model.enter(client, share.into(), self.unused_ns);
        }
    }

    fn set_share(&mut self, client: u32, weight: u32) {
        self.policy.set_share(client, Share::new(weight).expect("in range"), self.now);
        if let Some(share) = &mut self.shares[client as usize] {
            *share = weight;
            if self.queued(client) {
                self.model.leave(client);
                self.model.enter(client, weight.into(), self.unused_ns);
            }
        }
    }

    fn decide(&mut self, count: u8, used_ns: u64, stop: Stop) {
        let picked = self.pick(count);
        self.stop(picked, used_ns, stop);
    }

    fn pick(&mut self, count: u8) -> Vec<u32> {
        let mut picked = vec![];
        for _ in 0..count {
            let client = self.policy.pick(0, self.now).map(|decision| decision.client);
            assert_eq!(client, self.model.pick());
            picked.extend(client);
            self.last = client.map(|client| self.key(client));
        }
        picked
    }

    fn stop(&mut self, picked: Vec<u32>, used_ns: u64, stop: Stop) {
        for client in picked {
            let counter = self.policy.counter(ClientId::new(client));
            self.policy.ran(client, used_ns, stop, self.now);
            let used_ns = if stop == Stop::Yielded { used_ns.max(QUANTUM_NS) } else { used_ns };
            self.model.ran(client, used_ns.into(), stop == Stop::Blocked, stop == Stop::Preempted);
            if stop == Stop::Preempted && self.policy.counter(ClientId::new(client)) > counter {
                self.last = self.before(client);
            }
        }
    }

    fn assert_same_state(&self) {
        let queue: Vec<_> =
            self.policy.run_queue().map(|(client, counter)| (client.get(), counter)).collect();
        let expected: Vec<_> =
            self.model.queue.iter().map(|client| (client.id, client.counter as u32)).collect();
        assert_eq!(queue, expected, "the queue and its counters");
        if let Some(time) = self.policy.queue_virtual_time() {
            assert_same(time.numerator, time.denominator, self.model.queue_virtual_time());
        }
        for client in &self.model.queue {
            let time =
                self.policy.virtual_finishing_time(ClientId::new(client.id)).expect("it is in the queue");
            assert_same(time.numerator, time.denominator, self.model.virtual_finishing_time(client));
        }
    }

    /// The client behind the current client, or behind its place, may be due one quantum more: it runs next.
    fn assert_time_counter_invariant(&self) {
        let queue: Vec<_> =
            self.policy.run_queue().map(|(client, counter)| (client.get(), counter)).collect();
        for pair in queue.windows(2) {
            let passed = |client| self.last.is_some_and(|last| self.key(client) <= last);
            let runs_next = passed(pair[0].0) && !passed(pair[1].0);
            assert!(pair[1].1 <= pair[0].1 + u32::from(runs_next), "{:?} behind {:?}", pair[1], pair[0]);
        }
    }

    /// A client that had to give way before its quantum was over runs next, as if the client before it had
    /// been selected last.
    fn before(&self, client: u32) -> Option<(Reverse<Option<u32>>, u32)> {
        let keys = self.model.queue.iter().map(|queued| self.key(queued.id));
        keys.take_while(|&key| key < self.key(client)).last()
    }

    /// The key by which the queue is sorted.
    fn key(&self, client: u32) -> (Reverse<Option<u32>>, u32) {
        (Reverse(self.shares[client as usize]), client)
    }
}

fn assert_same(numerator: i128, denominator: i128, expected: Fraction) {
    assert_eq!(numerator * expected.1, expected.0 * denominator);
}

fn quanta(clients: u32) -> Setup {
    Setup { quantum_ns: Nanoseconds::new(QUANTUM_NS), ..Setup::for_clients(clients) }
}

/// The events on one processor: one decision at a time, whole quanta unless a client gives way.
fn on_one_processor(clients: u32) -> impl Strategy<Value = Vec<Step>> {
    steps(clients, 0..=QUANTUM_NS).prop_map(|mut steps| {
        for step in &mut steps {
            if let Step::Decide(count, used_ns, stop) = step {
                *count = 1;
                if *stop == Stop::Expired {
                    *used_ns = QUANTUM_NS;
                }
            }
            if let Step::Meanwhile(_, _, used_ns, Stop::Expired) = step {
                *used_ns = QUANTUM_NS;
            }
        }
        steps
    })
}

fn started(shares: &[u32]) -> Vtrr {
    let mut policy = Vtrr::new(&quanta(shares.len() as u32));
    for (client, &share) in (0..).zip(shares) {
        policy.add(client, 0, Share::new(share).expect("in range"), 0);
        let _ = policy.wake(client, 0);
    }
    policy
}

/// The time that each client has, while client 0 uses that part of every quantum and then blocks and
/// wakes at once, or one decision later.
fn service(shares: &[u32], part_ns: u64, late: bool, decisions: usize) -> Vec<u64> {
    let mut policy = started(shares);
    let mut served = vec![0; shares.len()];
    let mut sleeps = false;
    for _ in 0..decisions {
        let client = policy.pick(0, 0).expect("others are ready").client;
        let (ran_ns, stop) = if client == 0 { (part_ns, Stop::Blocked) } else { (QUANTUM_NS, Stop::Expired) };
        policy.ran(client, ran_ns, stop, 0);
        served[client as usize] += ran_ns;
        if sleeps || (client == 0 && !late) {
            let _ = policy.wake(0, 0);
        }
        sleeps = client == 0 && late;
    }
    served
}

/// Used parts of 999 ns add up: in 1000 cycles of 5 quanta, 2 for each client of share 2.
#[test]
fn vtrr_2_a_client_that_blocks_just_before_the_end_of_its_quantum_has_no_more_time() {
    for late in [false, true] {
        let served = service(&[2, 2, 1], QUANTUM_NS - 1, late, 5_000);
        let total: u64 = served.iter().sum();
        assert!(served[0] <= total * 2 / 5 + 2 * QUANTUM_NS, "{served:?}");
    }
}

/// The client behind it has the same share, so that the counter of the returning one must not be smaller: it
/// is raised, and the part of the quantum that was used stays used. Without that, the client gained 1.4 % of
/// its time.
#[test]
fn vtrr_2_a_client_that_blocks_in_the_midst_of_quanta_gains_nothing_beside_an_equal_one() {
    for late in [false, true] {
        let served = service(&[7, 7, 3, 4], 893, late, 200_000);
        let total: u64 = served.iter().sum();
        assert!(served[0] <= total * 7 / 21 + 8 * QUANTUM_NS, "{served:?}");
    }
}

/// In a client's second cycle, what it used too much in the first is still counted.
#[test]
fn vtrr_2_a_part_of_a_quantum_used_too_much_is_remembered_over_cycles() {
    let mut policy = started(&[1, 1]);
    assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(0));
    policy.ran(0, QUANTUM_NS * 3 / 2, Stop::Blocked, 0);
    assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(1));
    policy.ran(1, QUANTUM_NS, Stop::Expired, 0);
    assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(1), "a new cycle");
    policy.ran(1, 0, Stop::Preempted, 0);
    let _ = policy.wake(0, 0);
    let time = policy.virtual_finishing_time(ClientId::new(0)).expect("it is in the queue");
    assert_eq!(time.numerator * 2, time.denominator * 3, "it had half a quantum before");
}

#[test]
fn vtrr_2_an_arrival_is_due_in_proportion_to_what_is_left_of_the_cycle() {
    let mut policy = started(&[8, 4, 16]);
    policy.remove(2, 0);
    for _ in 0..6 {
        let client = policy.pick(0, 0).expect("two are ready").client;
        policy.ran(client, QUANTUM_NS, Stop::Expired, 0);
    }
    policy.add(2, 0, Share::new(6).expect("in range"), 0);
    let _ = policy.wake(2, 0);
    assert_eq!(policy.counter(ClientId::new(2)), Some(3), "half of its share, as of the others'");
}

#[test]
fn vtrr_2_a_share_can_change_while_its_client_runs() {
    let mut policy = started(&[1, 1]);
    assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(0));
    policy.set_share(0, Share::new(3).expect("in range"), 0);
    policy.ran(0, QUANTUM_NS, Stop::Expired, 0);
    let mut served = [0u32; 2];
    for _ in 0..401 {
        let client = policy.pick(0, 0).expect("both are ready").client;
        policy.ran(client, QUANTUM_NS, Stop::Expired, 0);
        served[client as usize] += 1;
    }
    assert_eq!(served, [300, 101], "the rest of the first cycle is the other's; then 3 to 1");
}

/// An owner may pick before it reports the next wake-up of the same instant.
#[test]
fn vtrr_2_a_quantum_that_is_given_and_not_used_yet_is_not_in_the_virtual_time_of_an_arrival() {
    for (after_ns, counters) in [(0, [2, 3]), (QUANTUM_NS / 2, [1, 2]), (QUANTUM_NS, [0, 0])] {
        let mut policy = Vtrr::new(&quanta(3));
        for client in 0..3 {
            policy.add(client, 0, Share::new(client + 1).expect("in range"), 0);
        }
        let _ = policy.wake(0, 0);
        assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(0));
        let _ = policy.wake(1, after_ns);
        let _ = policy.wake(2, after_ns);
        // Half of the quantum is left: one of two quanta, one and a half of three, rounded up.
        assert_eq!(
            [1, 2].map(|client| policy.counter(ClientId::new(client))),
            counters.map(Some),
            "after {after_ns} ns"
        );
        if after_ns == 0 {
            policy.ran(0, QUANTUM_NS, Stop::Expired, QUANTUM_NS);
            let mut served = [1, 0, 0];
            for _ in 0..11 {
                let client = policy.pick(0, QUANTUM_NS).expect("all are ready").client;
                policy.ran(client, QUANTUM_NS, Stop::Expired, QUANTUM_NS);
                served[client as usize] += 1;
            }
            assert_eq!(served, [2, 4, 6]);
        }
    }
}

#[test]
fn vtrr_2_insertion_looks_beside_the_last_neighbours_first() {
    let mut policy = started(&(1..=100).collect::<Vec<_>>());
    let count = |policy: &Vtrr, which: &str| {
        let mut found = 0;
        policy.counters(&mut |name, value| found += if name == which { value } else { 0 });
        found
    };
    let searched = count(&policy, "insertions after a search");
    for _ in 0..500 {
        let client = policy.pick(0, 0).expect("all are ready").client;
        policy.ran(client, QUANTUM_NS, Stop::Blocked, 0);
        let _ = policy.wake(client, 0);
    }
    assert_eq!(count(&policy, "insertions after a search"), searched);
    assert_eq!(count(&policy, "insertions beside a neighbour"), 500);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn vtrr_2_every_decision_counter_and_virtual_time_is_that_of_the_model(history in steps(12, used_ns())) {
        let mut pair = Pair::new(Vtrr::new(&quanta(CLIENTS)).with_reset(Reset::AtOnce));
        for step in &history {
            pair.take(step);
            pair.assert_same_state();
        }
    }

    /// So long a queue that it is made of several chunks, which split and join.
    #[test]
    fn vtrr_2_a_long_queue_is_that_of_the_model(history in steps(CLIENTS, used_ns()), keep in 0u32..CLIENTS) {
        let mut pair = Pair::new(Vtrr::new(&quanta(CLIENTS)).with_reset(Reset::AtOnce));
        for client in 0..CLIENTS {
            pair.take(&Step::Arrive(client * 37 % CLIENTS, 1 + client % 40));
        }
        history.iter().for_each(|step| pair.take(step));
        pair.assert_same_state();
        for client in (0..CLIENTS).filter(|&client| client != keep) {
            pair.take(&Step::Remove(client * 53 % CLIENTS));
            pair.take(&Step::Decide(1, QUANTUM_NS, Stop::Expired));
        }
        pair.assert_same_state();
    }

    #[test]
    fn vtrr_1_resetting_counters_as_the_pass_comes_to_them_gives_the_same_schedule(history in on_one_processor(40)) {
        let mut pair = Pair::new(Vtrr::new(&quanta(CLIENTS)));
        for step in &history {
            pair.take(step);
            pair.assert_same_state();
        }
    }

    #[test]
    fn vtrr_2_both_ways_of_insertion_give_the_same_schedule(history in on_one_processor(CLIENTS)) {
        for largest in [Share::MAX, Share::new(5).expect("in range")] {
            let mut pair = Pair::new(Vtrr::ranged(&quanta(CLIENTS), largest));
            history.iter().for_each(|step| pair.take(step));
            pair.assert_same_state();
        }
    }

    #[test]
    fn vtrr_1_no_counter_is_larger_than_the_one_before(history in on_one_processor(10)) {
        let mut pair = Pair::new(Vtrr::new(&quanta(CLIENTS)));
        for step in &history {
            pair.take(step);
            pair.assert_time_counter_invariant();
        }
    }

    /// With that invariant, the head's counter of zero means that all are: a cycle ends exactly.
    #[test]
    fn vtrr_1_a_cycle_ends_when_no_client_is_due_anything(history in on_one_processor(10)) {
        let mut pair = Pair::new(Vtrr::new(&quanta(CLIENTS)));
        for step in &history {
            let (cycle, queue) = (pair.policy.cycle(), pair.policy.run_queue().collect::<Vec<_>>());
            pair.take(step);
            if matches!(step, Step::Decide(..)) && pair.policy.cycle() != cycle {
                prop_assert!(queue.iter().all(|&(_, counter)| counter == 0), "{queue:?}");
            }
        }
    }

    /// No more than its part of the time, up to where in a cycle the count ends.
    #[test]
    fn vtrr_2_a_client_gains_nothing_by_leaving_and_returning(
        shares in prop::collection::vec(1u32..=12, 2..10), part_ns in 1..=QUANTUM_NS, late in any::<bool>()
    ) {
        let served = service(&shares, part_ns, late, 2_000);
        let (time, total): (u64, u32) = (served.iter().sum(), shares.iter().sum());
        let due = time * u64::from(shares[0]) / u64::from(total);
        let allowed = due + u64::from(shares[0] + 1) * QUANTUM_NS;
        prop_assert!(served[0] <= allowed, "{} of {due} ns", served[0]);
    }
}
