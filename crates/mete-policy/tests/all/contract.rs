//! What the interface promises, for every policy in the catalog and any sequence of calls.

use crate::common::plain::{Decision, Policy};
use crate::common::world::Answer;
use crate::common::{self, CLIENTS, PROCESSORS, Step, World, setup, steps, wild_steps};
use mete_policy::{CATALOG, Nanoseconds, Setup, Share, Stop, by_name};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The world's own books say which clients are ready; it asserts at each step that the policy agrees.
    #[test]
    fn new_1_every_policy_picks_ready_clients_and_no_others(history in steps(400)) {
        for entry in CATALOG {
            let mut world = World::new((entry.make)(&setup()));
            for step in &history {
                world.take(step);
            }
        }
    }

    #[test]
    fn new_1_no_time_whatever_makes_a_policy_panic_or_pick_wrongly(
        history in wild_steps(300),
        quantum_ns in prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>()],
    ) {
        for entry in CATALOG {
            let setup = Setup { quantum_ns: Nanoseconds::new(quantum_ns), ..setup() };
            let mut world = World::with((entry.make)(&setup), setup);
            for step in &history {
                world.take(step);
            }
        }
    }

    #[test]
    fn new_1_the_same_calls_give_the_same_answers(history in steps(200)) {
        for entry in CATALOG {
            let answers = |()| {
                let mut world = World::new((entry.make)(&setup()));
                history.iter().for_each(|step| world.take(step));
                world.answers
            };
            prop_assert_eq!(answers(()), answers(()), "{}", entry.name);
        }
    }

    /// A decision that cannot be carried out counts as not made; only a lottery draws anew.
    #[test]
    fn new_1_a_decision_that_is_given_back_is_made_again(history in steps(200)) {
        for entry in CATALOG.iter().filter(|entry| entry.name != "lottery") {
            let mut world = World::new((entry.make)(&setup())).picking_one_ahead();
            history.iter().for_each(|step| world.take(step));
            if let &[first, _ahead] = world.picked(0) {
                world.take(&Step::RanFor(first, 1000, 3));
            }
            // All at one moment: in another one, another client may be next.
            world.take(&Step::Late(0));
            world.take(&Step::Pick(0));
            let decided = *world.answers.last().expect("an answer");
            if decided != Answer::Pick(None) {
                world.take(&Step::GiveBack(0));
                world.take(&Step::Pick(0));
                prop_assert_eq!(*world.answers.last().expect("an answer"), decided, "{}", entry.name);
            }
        }
    }

    /// Whatever happened before: each number is first unused, then that of a new client that is picked once.
    #[test]
    fn new_1_numbers_can_be_used_again_when_all_clients_have_gone(history in steps(200)) {
        for entry in CATALOG {
            let mut world = World::new((entry.make)(&setup()));
            history.iter().for_each(|step| world.take(step));
            (0..CLIENTS).for_each(|client| world.take(&Step::Remove(client)));
            for client in 0..CLIENTS {
                world.take(&Step::Pick(0));
                world.take(&Step::Add(client, 0, 1));
                world.take(&Step::Wake(client));
                world.take(&Step::Pick((client % u32::from(PROCESSORS)) as u16));
            }
            prop_assert_eq!(world.in_state(common::State::Running), CLIENTS as usize, "{}", entry.name);
        }
    }

    /// No client stays ready for ever while the others are served: all wake, and none blocks.
    #[test]
    fn new_1_every_ready_client_runs_in_the_end(shares in prop::collection::vec(1u32..=50, CLIENTS as usize)) {
        for entry in CATALOG {
            for processors in [1, PROCESSORS] {
                let served = serve(&mut (entry.make)(&Setup { processors, ..setup() }), processors, &shares);
                let all = served.iter().all(|&served| served);
                prop_assert!(all, "{} on {processors}: {served:?} of {shares:?}", entry.name);
            }
        }
    }
}

/// Which of these clients, which compute all the time, are served within 40,000 decisions.
fn serve(policy: &mut dyn Policy, processors: u16, shares: &[u32]) -> Vec<bool> {
    for (client, &share) in (0..).zip(shares) {
        policy.add(client, 0, Share::new(share).expect("drawn in range"), 0);
        let _ = policy.wake(client, 0);
    }
    let mut machine = Machine { running: vec![None; usize::from(processors)], now: 0 };
    let mut served = vec![false; shares.len()];
    for _ in 0..40_000 {
        served[machine.step(policy).client as usize] = true;
        if served.iter().all(|&served| served) {
            break;
        }
    }
    served
}

/// Processors on which each client runs for its slice, with ticks where the policy wants them.
struct Machine {
    /// Each processor's decision and the time when it is over.
    running: Vec<Option<(Decision, u64)>>,
    now: u64,
}

impl Machine {
    /// Goes on to the end of a slice, and answers the next decision.
    fn step(&mut self, policy: &mut dyn Policy) -> Decision {
        let ends = |place: &Option<(Decision, u64)>| place.map_or(0, |(_, end)| end);
        let processor = (0..self.running.len()).min_by_key(|&processor| ends(&self.running[processor]));
        let processor = processor.expect("there are processors");
        if let Some((decision, end)) = self.running[processor].take() {
            self.tick_until(policy, end);
            policy.ran(decision.client, decision.slice_ns, Stop::Expired, end);
        }
        let decision = policy.pick(processor as u16, self.now).expect("more are ready than run");
        self.running[processor] = Some((decision, self.now + decision.slice_ns));
        decision
    }

    /// A client that a tick wants preempted goes on to the end of its slice: an owner may be that late.
    fn tick_until(&mut self, policy: &mut dyn Policy, end: u64) {
        let tick_ns = policy.tick_ns().unwrap_or(u64::MAX);
        let mut next = self.now / tick_ns * tick_ns;
        loop {
            next = next.saturating_add(tick_ns);
            if next > end {
                break;
            }
            for processor in 0..self.running.len() {
                let _ = policy.tick(processor as u16, next);
            }
        }
        self.now = end;
    }
}

#[test]
fn new_1_every_policy_answers_to_its_name() {
    for entry in CATALOG {
        assert_eq!((entry.make)(&setup()).name(), entry.name);
        assert!(by_name(entry.name).is_some() && !entry.about.is_empty());
    }
    assert!(by_name("no such policy").is_none());
}

#[test]
fn new_1_a_policy_for_no_clients_on_no_processor_picks_no_client() {
    let setup = Setup { clients: 0, domains: 0, processors: 0, quantum_ns: Nanoseconds::ZERO, seed: 0 };
    for entry in CATALOG {
        let mut world = World::with((entry.make)(&setup), setup);
        for step in [Step::Add(0, 0, 1), Step::Wake(0), Step::Pick(0), Step::Pick(1), Step::Tick(0)] {
            world.take(&step);
        }
        world.take(&Step::Ran(0, 1, 0));
    }
}

/// A share larger than all others together is a share like any other.
#[test]
fn new_1_the_largest_shares_beside_the_smallest_stop_no_client() {
    for entry in CATALOG {
        let shares: Vec<u32> = (0..CLIENTS).map(|client| if client % 2 == 0 { 1 << 20 } else { 1 }).collect();
        let mut world = World::new((entry.make)(&setup()));
        for (client, &share) in (0..).zip(&shares) {
            world.take(&Step::Add(client, 0, share));
            world.take(&Step::Wake(client));
        }
        for round in 0..2_000 {
            world.take(&Step::Pick(0));
            (0..CLIENTS).for_each(|client| world.take(&Step::Ran(client, 255, 3)));
            world.take(&Step::Share(round % CLIENTS, if round % 3 == 0 { 1 << 20 } else { 1 }));
        }
    }
}

#[test]
fn new_1_when_all_are_blocked_no_client_is_picked_and_the_first_to_wake_is() {
    for entry in CATALOG {
        let mut world = World::new((entry.make)(&setup()));
        for client in 0..CLIENTS {
            world.take(&Step::Add(client, 0, 1 + client));
            world.take(&Step::Wake(client));
        }
        for _ in 0..CLIENTS {
            world.take(&Step::Pick(0));
            (0..CLIENTS).for_each(|client| world.take(&Step::Ran(client, 100, 0)));
        }
        assert_eq!(world.in_state(common::State::Blocked), CLIENTS as usize, "{}", entry.name);
        world.take(&Step::Pick(0));
        world.take(&Step::Wake(5));
        world.take(&Step::Pick(0));
        assert_eq!(world.states[5], common::State::Running, "{}", entry.name);
    }
}

/// An owner may pick ahead of the end of a run: if that pick is given back, the running client can still be
/// preempted.
#[test]
fn new_1_a_pick_ahead_that_is_given_back_leaves_the_running_client_where_it_runs() {
    for entry in CATALOG {
        let preempts = |picks_ahead: bool| {
            let mut policy = (entry.make)(&Setup::for_clients(3));
            (0..3).for_each(|client| policy.add(client, 0, Share::ONE, 0));
            let _ = policy.wake(0, 0);
            let _ = policy.wake(1, 0);
            let running = policy.pick(0, 0).expect("two are ready");
            let now = running.slice_ns / 2;
            let _ = policy.tick(0, now);
            if picks_ahead {
                let next = policy.pick(0, now).expect("one is ready");
                policy.ran(next.client, 0, Stop::Preempted, now);
            }
            policy.wake(2, now)
        };
        assert_eq!(preempts(true), preempts(false), "{}", entry.name);
    }
}

#[test]
fn new_1_the_catalogue_says_which_policies_give_a_turn_for_each_unit_of_a_share() {
    const SHARE: Share = Share::new(100).expect("not zero");
    for entry in CATALOG {
        let mut policy = (entry.make)(&setup());
        for client in [0, 1] {
            policy.add(client, 0, SHARE, 0);
            let _ = policy.wake(client, 0);
        }
        let decision = policy.pick(0, 0).expect("two are ready");
        let quanta = decision.slice_ns / setup().quantum_ns.get();
        assert_eq!(entry.has_turns_by_share, quanta >= 50, "{}: {quanta} quanta", entry.name);
    }
}

#[test]
fn new_1_the_catalogue_says_which_policies_give_domains_shares() {
    for entry in CATALOG {
        let setup = Setup { domains: 3, ..Setup::for_clients(4) };
        let mut policy = (entry.make)(&setup);
        (1..=2).for_each(|domain| policy.add_domain(domain, 0, Share::ONE));
        for client in 0..4 {
            // One in the first domain, three in the second one.
            policy.add(client, if client == 0 { 1 } else { 2 }, Share::ONE, 0);
            let _ = policy.wake(client, 0);
        }
        let (mut now, mut had) = (0, [0; 2]);
        for _ in 0..20_000 {
            let decision = policy.pick(0, now).expect("all are ready");
            let ran = policy.tick_ns().map_or(decision.slice_ns, |tick| tick.min(decision.slice_ns));
            now += ran;
            if policy.tick_ns().is_some() {
                let _ = policy.tick(0, now);
            }
            had[usize::from(decision.client != 0)] += ran;
            let stop = if ran == decision.slice_ns { Stop::Expired } else { Stop::Preempted };
            policy.ran(decision.client, ran, stop, now);
        }
        let part = had[0] as f64 / now as f64;
        assert_eq!(entry.has_domains, (part - 0.5).abs() < 0.05, "{}: {part}", entry.name);
    }
}
