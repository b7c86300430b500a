//! The policy that also runs inside the kernel, written in C, decides as its twin in Rust does (D12).

use crate::common::world::Answer;
use crate::common::{Step, World, setup, steps, wild_steps};
use mete_policy::{
    ClientId, DistributedVtrr, DomainIndex, KernelVtrr, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop,
};
use proptest::prelude::*;

fn answers(policy: impl Policy + 'static, setup: Setup, history: &[Step]) -> Vec<Answer> {
    let mut world = World::with(Box::new(policy), setup);
    history.iter().for_each(|step| world.take(step));
    world.answers
}

fn decide_alike(setup: Setup, history: &[Step]) -> Result<(), TestCaseError> {
    let kernel = answers(KernelVtrr::new(&setup), setup, history);
    prop_assert_eq!(kernel, answers(DistributedVtrr::new(&setup), setup, history));
    Ok(())
}

/// What clients that compute all the time are given on some processors, each client on those of its mask.
macro_rules! given {
    ($policy:ident, $shares:expr, $masks:expr, $processors:expr) => {{
        let quantum_ns = Nanoseconds::new(1_000_000);
        let setup = Setup { processors: $processors, quantum_ns, ..Setup::for_clients($shares.len() as u32) };
        let mut policy = $policy::new(&setup);
        for (client, (share, mask)) in (0..).map(ClientId::new).zip($shares.iter().zip($masks)) {
            policy.add(client, DomainIndex::ROOT, Share::new(*share).expect("in range"), Nanoseconds::ZERO);
            policy.set_allowed(client, *mask);
            let _ = policy.wake(client, Nanoseconds::ZERO);
        }
        let turn = |nth: u16| {
            let picked = policy.pick(ProcessorId::new(nth % $processors), Nanoseconds::ZERO);
            let client = picked.map(|picked| picked.client);
            client.inspect(|&client| policy.ran(client, quantum_ns, Stop::Expired, Nanoseconds::ZERO))
        };
        (0..2000).map(turn).collect::<Vec<_>>()
    }};
}

/// Which clients run when at each turn that is a multiple of `every` the next one by number is hastened.
macro_rules! hastened {
    ($policy:ident, $shares:expr, $processors:expr, $every:expr) => {{
        let quantum_ns = Nanoseconds::new(1_000_000);
        let clients = $shares.len() as u32;
        let setup = Setup { processors: $processors, domains: 3, quantum_ns, ..Setup::for_clients(clients) };
        let mut policy = $policy::new(&setup);
        for domain in 1..3 {
            policy.add_domain(
                DomainIndex::new(domain),
                DomainIndex::ROOT,
                Share::new(domain.into()).expect("in range"),
            );
        }
        for (client, share) in (0..).zip($shares) {
            let (client, domain) = (ClientId::new(client), DomainIndex::new(client as u16 % 3));
            policy.add(client, domain, Share::new(*share).expect("in range"), Nanoseconds::ZERO);
            let _ = policy.wake(client, Nanoseconds::ZERO);
        }
        let turn = |nth: u32| {
            let chosen = ClientId::new(nth / $every % clients);
            let waited = nth % $every == 0 && policy.hasten(chosen);
            let processor = ProcessorId::new(nth as u16 % $processors);
            let picked = policy.pick(processor, Nanoseconds::ZERO).map(|picked| picked.client);
            picked.inspect(|&client| policy.ran(client, quantum_ns, Stop::Expired, Nanoseconds::ZERO));
            (chosen, waited, picked)
        };
        (0..1000).map(turn).collect::<Vec<_>>()
    }};
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn vtrr_6_the_kernels_policy_decides_as_its_twin_in_rust(history in steps(600)) {
        decide_alike(setup(), &history)?;
    }

    #[test]
    fn vtrr_6_the_kernels_policy_decides_as_its_twin_on_one_processor(history in steps(600)) {
        decide_alike(Setup { processors: 1, ..setup() }, &history)?;
    }

    #[test]
    fn vtrr_6_the_kernels_policy_decides_as_its_twin_whatever_the_times(
        history in wild_steps(400),
        quantum_ns in prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>(), Just(1_000_000)],
    ) {
        decide_alike(Setup { quantum_ns: Nanoseconds::new(quantum_ns), ..setup() }, &history)?;
    }

    #[test]
    fn vtrr_6_the_kernels_policy_decides_as_its_twin_where_clients_are_bound(
        bound in prop::collection::vec((1..20_u32, 1..16_u64), 1..10),
        processors in 1..5_u16,
    ) {
        let (shares, masks): (Vec<_>, Vec<_>) = bound.into_iter().unzip();
        prop_assert_eq!(
            given!(KernelVtrr, shares, &masks, processors),
            given!(DistributedVtrr, shares, &masks, processors)
        );
    }

    #[test]
    fn vtrr_6_the_kernels_policy_decides_as_its_twin_where_clients_are_hastened(
        shares in prop::collection::vec(1..200_u32, 1..12),
        processors in 1..4_u16,
        every in 1..9_u32,
    ) {
        let kernel = hastened!(KernelVtrr, &shares, processors, every);
        prop_assert_eq!(&kernel, &hastened!(DistributedVtrr, &shares, processors, every));
        // On one processor, one that was hastened is next.
        let next = kernel.iter().filter(|&&(_, waited, _)| waited && processors == 1);
        prop_assert!(next.into_iter().all(|&(chosen, _, picked)| picked == Some(chosen)));
    }

    #[test]
    fn vtrr_6_one_that_the_kernel_is_told_to_run_next_is_the_one_that_the_policy_chooses(
        wakes in prop::collection::vec((0..9_u32, 1..3_000_000_u64, any::<bool>()), 50..300),
    ) {
        let mut policy = nested();
        let mut runs: Option<ClientId> = None;
        for (client, ran_ns, blocks) in wakes {
            let client = ClientId::new(client);
            let _ = policy.wake(client, Nanoseconds::ZERO);
            let next = policy.is_next(client).then_some(client).filter(|next| Some(*next) != runs);
            if let Some(running) = runs.take() {
                // Its own turn may come again before that of one that only waits.
                let blocks = blocks || next.is_some();
                let stop = if blocks { Stop::Blocked } else { Stop::Expired };
                policy.ran(running, Nanoseconds::new(ran_ns), stop, Nanoseconds::ZERO);
            }
            runs = policy.pick(ProcessorId::new(0), Nanoseconds::ZERO).map(|picked| picked.client);
            prop_assert!(next.is_none() || runs == next, "{next:?} and not {runs:?}");
        }
    }
}

#[test]
fn vtrr_6_only_one_that_waits_alone_is_told_to_run_next() {
    let mut policy = nested();
    let [first, second, third] = [0, 3, 6].map(ClientId::new);
    let mut wake = |client| {
        let _ = policy.wake(client, Nanoseconds::ZERO);
        policy.is_next(client)
    };
    assert!(wake(first));
    assert!(!wake(second));
    let picked = policy.pick(ProcessorId::new(0), Nanoseconds::ZERO).map(|picked| picked.client);
    assert_eq!((picked, policy.is_next(first), policy.is_next(second)), (Some(first), false, true));
    let _ = policy.wake(third, Nanoseconds::ZERO);
    assert_eq!([second, third].map(|client| policy.is_next(client)), [false, false]);
}

/// Nine clients: three in the root, three in a domain, three in one below that.
fn nested() -> KernelVtrr {
    let setup = Setup { domains: 3, quantum_ns: Nanoseconds::new(1_000_000), ..Setup::for_clients(9) };
    let mut policy = KernelVtrr::new(&setup);
    for domain in 1..3 {
        policy.add_domain(DomainIndex::new(domain), DomainIndex::new(domain - 1), Share::ONE);
    }
    for client in 0..9 {
        let domain = DomainIndex::new(client as u16 % 3);
        policy.add(ClientId::new(client), domain, Share::ONE, Nanoseconds::ZERO);
    }
    policy
}

/// One client computes all the time on the first of two processors; another one wakes, runs briefly and
/// blocks again and again, bound to the first one and then to none. Each time then: whom its wake-up
/// displaced, and where it was picked.
fn where_a_sleeper_runs(policy: &mut dyn Policy) -> [Vec<(Option<ProcessorId>, ProcessorId)>; 2] {
    const ZERO: Nanoseconds = Nanoseconds::ZERO;
    let [hog, sleeper] = [0, 1].map(ClientId::new);
    for client in [hog, sleeper] {
        policy.add(client, DomainIndex::ROOT, Share::ONE, ZERO);
        policy.set_allowed(client, 0b01);
    }
    let _ = policy.wake(hog, ZERO);
    let both = [0, 1].map(ProcessorId::new);
    let mut running = [policy.pick(both[0], ZERO).map(|picked| picked.client), None];
    let (mut runs, mut displaced) = ([Vec::new(), Vec::new()], policy.wake(sleeper, ZERO));
    for nth in 0..200 {
        if let Some(processor) = displaced {
            let client = running[processor.index()].take().expect("it runs");
            policy.ran(client, Nanoseconds::new(100_000), Stop::Preempted, ZERO);
        }
        for (on, client) in both.iter().zip(&mut running) {
            *client = client.or_else(|| policy.pick(*on, ZERO).map(|picked| picked.client));
        }
        if let Some(on) = running.iter().position(|client| *client == Some(sleeper)) {
            runs[nth / 100].push((displaced.take(), ProcessorId::at(on)));
            running[on] = None;
            policy.ran(sleeper, Nanoseconds::new(10_000), Stop::Blocked, ZERO);
            running[0] = running[0].or_else(|| policy.pick(both[0], ZERO).map(|picked| picked.client));
            policy.set_allowed(sleeper, if nth < 99 { 0b01 } else { 0b11 });
            displaced = policy.wake(sleeper, ZERO);
        } else if let Some(client) = running[0].take() {
            policy.ran(client, Nanoseconds::new(1_000_000), Stop::Expired, ZERO);
        }
    }
    runs
}

#[test]
fn vtrr_7_beyond_the_first_64_processors_only_clients_run_that_are_bound_to_none_of_these() {
    const ZERO: Nanoseconds = Nanoseconds::ZERO;
    let setup = Setup { processors: 130, ..Setup::for_clients(3) };
    let policies: [Box<dyn Policy>; 2] =
        [Box::new(DistributedVtrr::new(&setup)), Box::new(KernelVtrr::new(&setup))];
    for mut policy in policies {
        let [bound, other, free] = [0, 1, 2].map(ClientId::new);
        for (client, allowed) in [(bound, 1), (other, 1), (free, u64::MAX)] {
            policy.add(client, DomainIndex::ROOT, Share::ONE, ZERO);
            policy.set_allowed(client, allowed);
            let _ = policy.wake(client, ZERO);
        }
        let mut on = |processor| policy.pick(ProcessorId::new(processor), ZERO).map(|picked| picked.client);
        // The last bit of 64 and of 128 is that of processor 0.
        assert_eq!((on(64), on(128), on(65)), (Some(free), None, None));
        assert!([bound, other].map(Some).contains(&on(0)));
    }
}

#[test]
fn vtrr_7_a_client_that_wakes_goes_to_a_processor_without_clients_and_displaces_none() {
    let setup = Setup { processors: 2, ..Setup::for_clients(2) };
    let [first, second] = [0, 1].map(ProcessorId::new);
    let policies: [Box<dyn Policy>; 2] =
        [Box::new(DistributedVtrr::new(&setup)), Box::new(KernelVtrr::new(&setup))];
    for mut policy in policies {
        let [bound, free] = where_a_sleeper_runs(policy.as_mut());
        // Bound, it goes ahead of the other one as soon as it is known to run briefly.
        assert!(bound.contains(&(Some(first), first)), "{}: {bound:?}", policy.name());
        let free = &free[1..];
        assert!(
            free.len() > 50 && free.iter().all(|run| *run == (None, second)),
            "{}: {free:?}",
            policy.name()
        );
    }
}

/// Both twins, for this number of processors.
fn twins(processors: u16, clients: u32) -> [Box<dyn Policy>; 2] {
    let quantum_ns = Nanoseconds::new(1_000_000);
    let setup = Setup { processors, quantum_ns, ..Setup::for_clients(clients) };
    [Box::new(DistributedVtrr::new(&setup)), Box::new(KernelVtrr::new(&setup))]
}

fn come(policy: &mut dyn Policy, shares: &[(u32, u32)]) {
    for (client, share) in shares {
        let (client, share) = (ClientId::new(*client), Share::new(*share).expect("in range"));
        policy.add(client, DomainIndex::ROOT, share, Nanoseconds::ZERO);
        let _ = policy.wake(client, Nanoseconds::ZERO);
    }
}

/// The quanta that each client has of so many on each processor.
fn had_of(policy: &mut dyn Policy, processors: u16, quanta: u64) -> Vec<u64> {
    let mut had = vec![0; 8];
    for _ in 0..quanta {
        let picked = (0..processors).filter_map(|on| policy.pick(ProcessorId::new(on), Nanoseconds::ZERO));
        for picked in picked.collect::<Vec<_>>() {
            policy.ran(picked.client, picked.slice_ns, Stop::Expired, Nanoseconds::ZERO);
            had[picked.client.index()] += 1;
        }
    }
    had
}

#[test]
fn vtrr_6_what_a_client_owes_when_its_share_changes_stays_the_same_time() {
    for (mut policy, name) in twins(1, 2).into_iter().zip(["Rust", "C"]) {
        come(policy.as_mut(), &[(0, 1), (1, 1)]);
        let picked = policy.pick(ProcessorId::new(0), Nanoseconds::ZERO).expect("two can run");
        // It was not stopped for 40 quanta, and has ten shares from now on.
        policy.ran(picked.client, Nanoseconds::new(40_000_000), Stop::Expired, Nanoseconds::ZERO);
        policy.set_share(picked.client, Share::new(10).expect("in range"), Nanoseconds::ZERO);
        let mut others = 0;
        loop {
            let next = policy.pick(ProcessorId::new(0), Nanoseconds::ZERO).expect("two can run");
            policy.ran(next.client, next.slice_ns, Stop::Expired, Nanoseconds::ZERO);
            if next.client == picked.client {
                break;
            }
            others += 1;
        }
        // Of 44 quanta the other one is due four. If what is owed stayed the same virtual time, it would have
        // forty.
        assert!((3..=6).contains(&others), "{name}: {others} quanta in a row");
    }
}

#[test]
fn vtrr_7_what_a_client_could_not_use_is_forfeit_when_others_come() {
    for (mut policy, name) in twins(2, 4).into_iter().zip(["Rust", "C"]) {
        // It is due four thirds of a processor, and can use one.
        come(policy.as_mut(), &[(0, 2), (1, 1)]);
        assert_eq!(had_of(policy.as_mut(), 2, 2000)[..2], [2000, 2000], "{name}");
        // Now it is due four fifths of one.
        come(policy.as_mut(), &[(2, 1), (3, 1)]);
        let had = had_of(policy.as_mut(), 2, 400);
        assert!(had[0].abs_diff(320) <= 40, "{name}: {had:?}");
    }
}

/// What a policy chooses for processors whose slices end in a random order, among this number of clients, some of which are
/// bound. It has the same random numbers each time.
fn choices(policy: &mut dyn Policy, processors: u16, clients: u32) -> Vec<Option<ClientId>> {
    let mut last = 88_172_645_463_325_252_u64;
    let mut roll = |sides: u64| {
        last ^= last << 13;
        last ^= last >> 7;
        last ^= last << 17;
        last % sides
    };
    for nth in 0..10 {
        let share = Share::new(1 + roll(9) as u32).expect("in range");
        policy.add_domain(DomainIndex::new(1 + nth), DomainIndex::ROOT, share);
    }
    for client in ClientId::first(clients) {
        let share = Share::new(1 + roll(9) as u32).expect("in range");
        policy.add(client, DomainIndex::new(roll(11) as u16), share, Nanoseconds::ZERO);
        if roll(8) == 0 {
            policy.set_allowed(client, 1 << roll(processors.into()));
        }
        let _ = policy.wake(client, Nanoseconds::ZERO);
    }
    let mut running = vec![None; processors.into()];
    let mut decide = |_| {
        let processor = roll(processors.into()) as u16;
        if let Some(client) = running[usize::from(processor)].take() {
            policy.ran(client, Nanoseconds::new(roll(1_100_000)), Stop::Expired, Nanoseconds::ZERO);
        }
        let picked = policy.pick(ProcessorId::new(processor), Nanoseconds::ZERO);
        running[usize::from(processor)] = picked.map(|picked| picked.client);
        running[usize::from(processor)]
    };
    (0..20_000).map(&mut decide).collect()
}

#[test]
fn vtrr_6_the_twins_choose_alike_among_hundreds_of_clients() {
    for (processors, clients) in [(1, 100), (2, 30), (2, 200), (3, 150), (4, 400), (16, 300)] {
        let quantum_ns = Nanoseconds::new(1_000_000);
        let setup = Setup { processors, domains: 11, quantum_ns, ..Setup::for_clients(clients) };
        let chosen = choices(&mut DistributedVtrr::new(&setup), processors, clients);
        assert!(chosen.iter().all(Option::is_some));
        assert!(
            chosen == choices(&mut KernelVtrr::new(&setup), processors, clients),
            "{processors} {clients}"
        );
    }
}
