//! The simulator of proportional shares: its results are exact, and the same on any number of threads.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use mete_policy::{
    CATALOG, ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Share, Stop,
};
use mete_sim::in_parallel;
use mete_sim::quanta::{
    Errors, Experiment, Outcome, Point, QUANTUM_NS, QuantaError, Shares, Tally, Turn, run, watch,
};
use proptest::prelude::*;

fn shares(weights: &[u32]) -> Shares {
    let shares = weights.iter().map(|&weight| Share::new(weight).expect("a share in range"));
    Shares::new(shares.collect()).expect("there are clients")
}

/// A policy with a given order of clients; each turn is one quantum.
struct Script {
    turns: Vec<ClientId>,
    next: usize,
    slice_ns: Nanoseconds,
}

impl Script {
    fn new(turns: &[u32]) -> Script {
        Script { turns: turns.iter().copied().map(ClientId::new).collect(), next: 0, slice_ns: QUANTUM_NS }
    }
}

impl Policy for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn add(&mut self, _: ClientId, _: DomainIndex, _: Share, _: Nanoseconds) {}

    fn remove(&mut self, _: ClientId, _: Nanoseconds) {}

    fn set_share(&mut self, _: ClientId, _: Share, _: Nanoseconds) {}

    fn wake(&mut self, _: ClientId, _: Nanoseconds) -> Option<ProcessorId> {
        None
    }

    fn pick(&mut self, _: ProcessorId, _: Nanoseconds) -> Option<Decision> {
        let client = *self.turns.get(self.next % self.turns.len().max(1))?;
        self.next += 1;
        Some(Decision { client, slice_ns: self.slice_ns, grant: Grant::Share })
    }

    fn ran(&mut self, _: ClientId, _: Nanoseconds, _: Stop, _: Nanoseconds) {}
}

/// The extremes of every client's error, times the sum of shares, from the definition (VTRR paper, §2.1): the
/// errors at each moment when a client starts or stops.
fn naive(shares: &Shares, turns: &[Turn]) -> Vec<(i128, i128)> {
    let total = i128::from(shares.total());
    let mut received = vec![0i128; shares.clients() as usize];
    let mut extremes = vec![(0, 0); received.len()];
    let mut look = |received: &[i128], now: i128| {
        for ((service, share), (lowest, highest)) in received.iter().zip(shares.as_slice()).zip(&mut extremes)
        {
            let error = service * total - i128::from(share.get()) * now;
            *lowest = error.min(*lowest);
            *highest = error.max(*highest);
        }
    };
    for turn in turns {
        look(&received, turn.from_ns.get().into());
        received[turn.client.index()] += i128::from(turn.ran_ns);
        look(&received, i128::from((turn.from_ns + turn.ran_ns).get()));
    }
    extremes
}

/// The simulator's results in the same form: the extremes of each client, and of all.
fn kept(outcome: &Outcome) -> (Vec<(i128, i128)>, (i128, i128)) {
    let pair = |errors: &Errors| (i128::from(errors.lowest), i128::from(errors.highest));
    (outcome.clients.iter().map(pair).collect(), pair(&outcome.errors))
}

fn of_all(extremes: &[(i128, i128)]) -> (i128, i128) {
    extremes.iter().fold((0, 0), |all, one| (all.0.min(one.0), all.1.max(one.1)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn vtrr_4_errors_are_those_of_the_definition_for_every_policy(
        weights in prop::collection::vec(1u32..=60, 1..=9),
        cycles in 1u32..=3,
    ) {
        let shares = shares(&weights);
        for entry in CATALOG {
            let mut turns = Vec::new();
            let mut policy = (entry.make)(&shares.setup(5));
            let outcome = watch(&mut policy, &shares, cycles, |turn| turns.push(turn)).expect("it runs");
            let expected = naive(&shares, &turns);
            let all = of_all(&expected);
            prop_assert_eq!(kept(&outcome), (expected, all), "{}", entry.name);
            prop_assert_eq!(outcome.decisions, turns.len() as u64);
        }
    }

    #[test]
    fn vtrr_4_errors_of_any_order_are_those_of_the_definition(
        weights in prop::collection::vec(1u32..=30, 4),
        order in prop::collection::vec(0u32..4, 1..40),
        slice_ns in 1..3 * QUANTUM_NS.get(),
    ) {
        let shares = shares(&weights);
        let mut policy = Script { slice_ns: Nanoseconds::new(slice_ns.max((QUANTUM_NS / 4).get())), ..Script::new(&order) };
        let mut turns = Vec::new();
        let outcome = watch(&mut policy, &shares, 1, |turn| turns.push(turn)).expect("it runs");
        let expected = naive(&shares, &turns);
        let all = of_all(&expected);
        prop_assert_eq!(kept(&outcome), (expected, all));
    }

    #[test]
    fn vtrr_4_random_shares_have_the_sum_and_leave_no_client_out(
        clients in 1u32..200, excess in 0u64..20_000, seed: u64,
    ) {
        let total = u64::from(clients) + excess;
        let shares = Shares::random(clients, total, seed).expect("a sum that can be had");
        prop_assert_eq!((shares.clients(), shares.total()), (clients, total));
        prop_assert_eq!(shares.as_slice().iter().map(|share| u64::from(share.get())).sum::<u64>(), total);
        prop_assert_eq!(shares, Shares::random(clients, total, seed).expect("as before"));
    }
}

/// Shares 3, 2 and 1 in the order A A A B B C. A is furthest ahead after its third quantum: 3 − 3/6 × 3 =
/// 1.5. B is furthest behind before its first: 0 − 2/6 × 3 = −1. C is at −5/6 before its own.
#[test]
fn vtrr_4_weighted_round_robin_of_three_two_one_is_off_by_1_behind_and_1_5_ahead() {
    let shares = shares(&[3, 2, 1]);
    let outcome = run(&mut Script::new(&[0, 0, 0, 1, 1, 2]), &shares, 1).expect("it runs");
    assert_eq!((outcome.errors.lowest_tu(), outcome.errors.highest_tu()), (-1.0, 1.5));
    assert!(outcome.repeats);
}

/// Ten times the shares give ten times the error (VTRR paper, §2.1).
#[test]
fn vtrr_4_the_error_of_weighted_round_robin_grows_with_the_shares() {
    let order: Vec<u32> = [(0, 30), (1, 20), (2, 10)].into_iter().flat_map(turns_of).collect();
    let outcome = run(&mut Script::new(&order), &shares(&[30, 20, 10]), 1).expect("it runs");
    assert_eq!((outcome.errors.lowest_tu(), outcome.errors.highest_tu()), (-10.0, 15.0));
}

fn turns_of((client, turns): (u32, usize)) -> impl Iterator<Item = u32> {
    std::iter::repeat_n(client, turns)
}

#[test]
fn vtrr_4_a_client_alone_is_never_off() {
    let outcome = run(&mut Script::new(&[0]), &shares(&[7]), 2).expect("it runs");
    assert_eq!((outcome.errors.lowest, outcome.errors.highest, outcome.decisions), (0, 0, 14));
}

#[test]
fn vtrr_4_a_schedule_that_leaves_a_client_out_does_not_repeat() {
    let outcome = run(&mut Script::new(&[0]), &shares(&[1, 1]), 1).expect("it runs");
    assert!(!outcome.repeats);
    assert_eq!((outcome.errors.lowest_tu(), outcome.errors.highest_tu()), (-1.0, 1.0));
}

#[test]
fn vtrr_4_a_slice_beyond_the_cycle_is_cut_at_its_end() {
    let mut policy = Script { slice_ns: 100 * QUANTUM_NS, ..Script::new(&[0, 1]) };
    let mut turns = Vec::new();
    run(&mut policy, &shares(&[2, 3]), 1).expect("it runs");
    watch(&mut policy, &shares(&[2, 3]), 1, |turn| turns.push(turn)).expect("it runs");
    assert_eq!(
        turns,
        [Turn { client: ClientId::new(1), from_ns: Nanoseconds::ZERO, ran_ns: 5 * QUANTUM_NS }]
    );
}

#[test]
fn vtrr_4_a_policy_that_picks_no_client_or_an_unknown_one_is_named() {
    for script in [Script::new(&[]), Script::new(&[9])] {
        let error = run(&mut { script }, &shares(&[1, 1]), 1).expect_err("it must not go on");
        assert_eq!(error, QuantaError::Idle { policy: "script", clients: 2 });
        assert!(error.to_string().contains("script"), "{error}");
    }
}

#[test]
fn vtrr_4_sums_that_cannot_be_had_and_schedules_too_long_are_refused() {
    assert_eq!(Shares::new(vec![]), Err(QuantaError::NoClients));
    assert_eq!(Shares::random(0, 5, 1), Err(QuantaError::NoClients));
    for total in [9, (1 << 20) + 10] {
        let error = Shares::random(10, total, 1).expect_err("no such sum");
        assert!(error.to_string().contains(&total.to_string()), "{error}");
    }
    let large = shares(&[1 << 20, 1 << 20]);
    let error = run(&mut Script::new(&[0]), &large, u32::MAX).expect_err("too long");
    assert_eq!(error, QuantaError::TooLong { total: 1 << 21, cycles: u32::MAX });
}

/// Everything that a sweep finds, as bytes.
fn found(threads: usize) -> Vec<u8> {
    let points = [(3, 40), (10, 64), (25, 100)].map(|(clients, total)| Point { clients, total });
    let jobs: Vec<_> = CATALOG.iter().flat_map(|entry| points.map(|point| (entry, point))).collect();
    let run = |job: usize| {
        let (entry, point) = jobs[job];
        Experiment { point, cycles: 2, seed: 11 }.run(0..6, entry.make).expect("it runs")
    };
    let threads = NonZeroUsize::new(threads).expect("some");
    let tallies: Vec<Tally> =
        in_parallel(jobs.len(), threads, run, || ControlFlow::Continue(())).expect("it is not stopped");
    format!("{tallies:?}").into_bytes()
}

#[test]
fn vtrr_4_the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let alone = found(1);
    assert!(!alone.is_empty());
    assert_eq!(alone, found(2));
    assert_eq!(alone, found(7));
}

#[test]
fn vtrr_4_assignments_depend_on_seed_point_and_number_alone() {
    let experiment = |seed| Experiment { point: Point { clients: 8, total: 500 }, cycles: 1, seed };
    let nth = |seed, nth| experiment(seed).shares(nth).expect("a sum that can be had");
    assert_eq!(nth(1, 3), nth(1, 3));
    assert_ne!(nth(1, 3), nth(1, 4));
    assert_ne!(nth(1, 3), nth(2, 3));
    let mut parts = experiment(1).run(0..2, CATALOG[0].make).expect("it runs");
    parts.append(experiment(1).run(2..5, CATALOG[0].make).expect("it runs"));
    assert_eq!(parts, experiment(1).run(0..5, CATALOG[0].make).expect("it runs"));
}

#[test]
fn a_sweep_that_is_told_to_stop_begins_nothing_more() {
    let threads = NonZeroUsize::new(2).expect("two");
    let mut ended = 0;
    let stop_at_3 = || {
        ended += 1;
        if ended == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert_eq!(in_parallel(1000, threads, |job| job, stop_at_3), None);
}
