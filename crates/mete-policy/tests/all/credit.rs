//! TAVS-1: the credit scheduler by itself, and what holds for it with every combination of TAVS parts.

use crate::common::plain::Policy;
use crate::common::{CLIENTS, World, setup, steps, wild_steps};
use mete_policy::credit::Priority;
use mete_policy::{
    ClientId, Credit, CreditSettings, Grant, Nanoseconds, Permille, Setup, Share, Stop, TavsSettings,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const TICK: u64 = 10 * MS;

fn share(weight: u32) -> Share {
    Share::new(weight).expect("in range")
}

/// Clients in the root, each with a weight of 1, awake, and with their wake-up boost gone.
fn host(clients: u32, settings: CreditSettings) -> Credit {
    let mut policy = Credit::new(&Setup::for_clients(clients), settings);
    for client in 0..clients {
        policy.add(client, 0, Share::ONE, 0);
        let _ = policy.wake(client, 0);
    }
    for client in 0..clients {
        assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(client), "first in first out");
        policy.ran(client, 0, Stop::Blocked, 0);
    }
    policy
}

fn counter(policy: &Credit, wanted: &str) -> u64 {
    let mut found = None;
    policy.counters(&mut |name, value| found = if name == wanted { Some(value) } else { found });
    found.expect("the counter exists")
}

/// A blocked client wakes, runs for that number of ticks and blocks.
fn use_ticks(policy: &mut Credit, client: u32, ticks: u64) {
    let _ = policy.wake(client, 0);
    assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(client));
    for _ in 0..ticks {
        let _ = policy.tick(0, 0);
    }
    policy.ran(client, ticks * TICK, Stop::Blocked, 0);
}

/// Ready clients run whole slices, with a tick at the end of each tick's time. Answers how long each client
/// ran.
fn run(policy: &mut Credit, now: &mut u64, ticks: u32) -> Vec<u64> {
    let mut had = vec![0; 16];
    let mut running: Option<(u32, u64, u64)> = None;
    for _ in 0..ticks {
        let (client, left, ran) = running.take().unwrap_or_else(|| {
            let decision = policy.pick(0, *now).expect("a client is ready");
            (decision.client, decision.slice_ns, 0)
        });
        *now += TICK;
        had[client as usize] += TICK;
        let _ = policy.tick(0, *now);
        if left == TICK {
            policy.ran(client, ran + TICK, Stop::Expired, *now);
        } else {
            running = Some((client, left - TICK, ran + TICK));
        }
    }
    if let Some((client, _, ran)) = running {
        policy.ran(client, ran, Stop::Preempted, *now);
    }
    had
}

#[test]
fn tavs_1_a_tick_debits_100_credits_which_are_its_10_ms_from_the_client_that_it_finds() {
    let mut policy = host(2, CreditSettings::XEN);
    assert_eq!(policy.tick_ns(), Some(TICK));
    let _ = policy.wake(0, 0);
    assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(0));
    for tick in 1..=2 {
        assert!(!policy.tick(0, tick * TICK), "a tick takes no processor away");
        assert_eq!(policy.credit_ns(ClientId::new(0)), -((tick * TICK) as i64));
    }
    assert_eq!(policy.credit_ns(ClientId::new(1)), 0, "a client that does not run pays nothing");
    policy.ran(0, 25 * MS, Stop::Blocked, 25 * MS);
    assert_eq!(
        policy.credit_ns(ClientId::new(0)),
        -20_000_000,
        "charged by tick, the time between ticks is free"
    );
}

#[test]
fn tavs_1_precise_accounting_charges_the_time_run_wherever_ticks_fall() {
    let mut policy = host(1, CreditSettings::BASELINE);
    let _ = policy.wake(0, 3 * MS);
    let _ = policy.pick(0, 3 * MS);
    let _ = policy.tick(0, TICK);
    assert_eq!(policy.credit_ns(ClientId::new(0)), -7_000_000, "since it was dispatched");
    policy.ran(0, 9 * MS, Stop::Blocked, 12 * MS);
    assert_eq!(policy.credit_ns(ClientId::new(0)), -9_000_000);
    let _ = policy.wake(0, 13 * MS);
    let _ = policy.pick(0, 13 * MS);
    policy.ran(0, MS / 10, Stop::Blocked, 13 * MS + MS / 10);
    assert_eq!(policy.credit_ns(ClientId::new(0)), -9_100_000, "no tick has to find it");
}

#[test]
fn tavs_1_with_precise_accounting_too_a_client_earns_from_the_tick_on_that_finds_it() {
    let mut policy = host(2, CreditSettings::BASELINE);
    let stretch = |policy: &mut Credit, client, length, now| {
        let _ = policy.wake(client, now);
        let _ = policy.pick(0, now);
        policy.ran(client, length, Stop::Blocked, now + length);
    };
    stretch(&mut policy, 0, 25 * MS, 0);
    for tick in 1..=3 {
        let _ = policy.tick(0, tick * TICK);
    }
    assert_eq!(policy.credit_ns(ClientId::new(0)), -25_000_000, "a client that no tick finds earns nothing");
    let _ = policy.wake(0, 35 * MS);
    let _ = policy.pick(0, 35 * MS);
    let _ = policy.tick(0, 4 * TICK);
    policy.ran(0, 6 * MS, Stop::Blocked, 41 * MS);
    let _ = policy.tick(0, 5 * TICK);
    let _ = policy.tick(0, 6 * TICK);
    assert_eq!(policy.credit_ns(ClientId::new(0)), -1_000_000, "31 ms used, 30 given to the only active one");
}

#[test]
fn tavs_1_every_30_ms_active_clients_are_given_credit_by_weight() {
    let mut policy = host(3, CreditSettings::XEN);
    policy.set_share(1, share(2), 0);
    use_ticks(&mut policy, 0, 2);
    assert_eq!(policy.credit_ns(ClientId::new(0)), -20_000_000);
    use_ticks(&mut policy, 0, 1);
    assert_eq!(
        policy.credit_ns(ClientId::new(0)),
        0,
        "the only active client gets all that a processor has in 30 ms"
    );
    use_ticks(&mut policy, 1, 3);
    // Of the 30 ms handed out then, client 1 gets two thirds.
    assert_eq!(
        (policy.credit_ns(ClientId::new(0)), policy.credit_ns(ClientId::new(1))),
        (10_000_000, -10_000_000)
    );
    assert_eq!(
        (policy.priority(ClientId::new(0)), policy.priority(ClientId::new(1))),
        (Priority::Under, Priority::Over)
    );
    assert_eq!(
        policy.credit_ns(ClientId::new(2)),
        0,
        "a client that has not run is not active and gets none"
    );
}

#[test]
fn tavs_1_a_domains_credit_is_split_among_its_active_clients() {
    let setup = Setup { domains: 3, ..Setup::for_clients(3) };
    let mut policy = Credit::new(&setup, CreditSettings::XEN);
    policy.add_domain(1, 0, share(256));
    policy.add_domain(2, 0, share(256));
    for (client, domain) in [(0, 1), (1, 1), (2, 2)] {
        policy.add(client, domain, Share::ONE, 0);
        let _ = policy.wake(client, 0);
    }
    for client in 0..3 {
        let _ = policy.pick(0, 0);
        let _ = policy.tick(0, 0);
        policy.ran(client, TICK, Stop::Preempted, 0);
    }
    let credits = [0, 1, 2].map(|client| policy.credit_ns(ClientId::new(client)));
    assert_eq!(credits, [-2_500_000, -2_500_000, 5_000_000], "15 ms a domain, less the tick each");
}

#[test]
fn tavs_1_credit_is_clipped_to_a_slice_either_way_and_savers_cease_to_earn() {
    let mut policy = host(2, CreditSettings::XEN);
    use_ticks(&mut policy, 1, 1);
    use_ticks(&mut policy, 0, 2);
    let mut credits = Vec::new();
    for _ in 0..4 {
        use_ticks(&mut policy, 0, 3);
        credits.push((
            policy.credit_ns(ClientId::new(0)) / MS as i64,
            policy.credit_ns(ClientId::new(1)) / MS as i64,
        ));
    }
    // 15 ms each at first; the saver loses all at 35 and the other then earns what it uses. The sum of
    // both was 0 throughout, so cutting off the second leaves a debt that is handed out in addition.
    assert_eq!(credits, [(-20, 20), (-30, 0), (0, 0), (0, 0)]);
}

#[test]
fn tavs_1_a_slice_is_30_ms_and_under_goes_before_over_each_first_in_first_out() {
    let mut policy = host(3, CreditSettings::XEN);
    for client in 0..3 {
        let _ = policy.wake(client, 0);
    }
    let mut order = Vec::new();
    for _ in 0..6 {
        let decision = policy.pick(0, 0).expect("ready");
        assert_eq!(decision.slice_ns, 30 * MS);
        order.push(decision.client);
        for _ in 0..3 {
            let _ = policy.tick(0, 0);
        }
        policy.ran(decision.client, decision.slice_ns, Stop::Expired, 0);
    }
    // Credit in ms after each slice: (0), (15, -15), (25, -5, -20), (5, 5, -10), (15, -15, 0). So after
    // the fifth, 0 stands before 2, which came later to what it has.
    assert_eq!(order, [0, 1, 2, 0, 1, 0]);
}

#[test]
fn tavs_1_a_client_that_wakes_with_credit_is_boosted_and_preempts_and_one_without_is_not() {
    let mut policy = host(2, CreditSettings::XEN);
    let _ = policy.wake(0, 0);
    let _ = policy.pick(0, 0);
    let _ = policy.tick(0, TICK);
    assert_eq!(policy.wake(1, TICK), Some(0), "a boosted client preempts one that has only credit");
    policy.ran(0, TICK, Stop::Preempted, TICK);
    let decision = policy.pick(0, TICK).expect("ready");
    assert_eq!(
        (decision.client, decision.grant, policy.priority(ClientId::new(1))),
        (1, Grant::WakeBoost, Priority::Boost)
    );
    policy.ran(1, MS, Stop::Blocked, 11 * MS);
    policy.ran(0, 0, Stop::Blocked, 11 * MS);

    let _ = policy.pick(0, 11 * MS);
    policy.ran(0, MS, Stop::Blocked, 12 * MS);
    use_ticks(&mut policy, 1, 5);
    assert_eq!(
        (policy.priority(ClientId::new(0)), policy.priority(ClientId::new(1))),
        (Priority::Under, Priority::Over)
    );
    let _ = policy.wake(0, 0);
    let _ = policy.pick(0, 0);
    assert_eq!(policy.wake(1, 0), None);
    assert_eq!((policy.priority(ClientId::new(1)), counter(&policy, "preemptions")), (Priority::Over, 1));
}

#[test]
fn tavs_1_a_boosted_client_that_a_tick_finds_running_is_demoted() {
    let mut policy = host(1, CreditSettings::XEN);
    let _ = policy.wake(0, 0);
    let _ = policy.pick(0, 0);
    assert_eq!(policy.priority(ClientId::new(0)), Priority::Boost);
    let _ = policy.tick(0, TICK);
    assert_eq!(policy.priority(ClientId::new(0)), Priority::Under);
}

/// 5.1, figure 10(c): hogs of one weight get the same, ones of different weights by their weights.
#[test]
fn tavs_1_hogs_get_processor_time_by_weight_over_many_periods() {
    for settings in [CreditSettings::XEN, CreditSettings::BASELINE, CreditSettings::TAVS] {
        let mut policy = host(4, settings);
        let weights = [1, 2, 3, 4];
        for client in 0..4 {
            policy.set_share(client, share(weights[client as usize]), 0);
            let _ = policy.wake(client, 0);
        }
        let mut now = 0;
        let had = run(&mut policy, &mut now, 30_000);
        for (client, weight) in weights.into_iter().enumerate() {
            let fair = u64::from(weight) * 30_000 * TICK / 10;
            assert!(had[client].abs_diff(fair) <= fair / 50, "{client}: {} of {fair}", had[client]);
        }
    }
}

/// Runs hogs of these weights for that number of ticks: what each had, and what was cut off and forgiven.
fn hogs(settings: CreditSettings, weights: &[u32], ticks: u32) -> (Vec<u64>, [u64; 2]) {
    let mut policy = host(weights.len() as u32, settings);
    for (client, &weight) in (0..).zip(weights) {
        policy.set_share(client, share(weight), 0);
        let _ = policy.wake(client, 0);
    }
    let had = run(&mut policy, &mut 0, ticks);
    (had, ["credit_cut_ns", "debt_forgiven_ns"].map(|name| counter(&policy, name)))
}

#[test]
fn tavs_1_two_hogs_have_their_weights_parts_within_two_slices_and_nothing_is_clipped() {
    for settings in [CreditSettings::XEN, CreditSettings::BASELINE, CreditSettings::TAVS] {
        for weight in (1..=32).chain([100, 1000, Share::MAX.get()]) {
            let (had, clipped) = hogs(settings, &[1, weight], 3_000);
            let fair = 3_000 * TICK / u64::from(1 + weight);
            assert_eq!(clipped, [0, 0], "1:{weight}");
            assert!(had[0].abs_diff(fair) <= 60 * MS, "1:{weight}: {} of {fair}", had[0]);
        }
    }
}

/// Clipping is Xen's, and costs the heaviest of these two fifths of its part.
#[test]
fn tavs_1_where_credit_is_clipped_weights_do_not_hold() {
    for settings in [CreditSettings::XEN, CreditSettings::BASELINE] {
        let (had, [cut_ns, _]) = hogs(settings, &[1024, 256, 64, 256, 64], 30_000);
        let permille = had.iter().take(5).map(|had| had * 1000 / (30_000 * TICK)).collect::<Vec<_>>();
        assert_eq!(permille, [375, 250, 62, 249, 62]);
        assert!(cut_ns > 0);
    }
}

#[test]
fn tavs_1_an_accounting_charges_the_running_client_of_every_processor_up_to_then() {
    let setup = Setup { processors: 2, ..Setup::for_clients(2) };
    let mut policy = Credit::new(&setup, CreditSettings::BASELINE);
    for client in 0..2 {
        policy.add(client, 0, Share::ONE, 0);
        let _ = policy.wake(client, 0);
        let _ = policy.pick(client as u16, 0);
    }
    for tick in 1..=2 {
        for processor in 0..2 {
            let _ = policy.tick(processor, tick * TICK);
        }
    }
    let _ = policy.tick(0, 3 * TICK);
    assert_eq!(
        [0, 1].map(|client| policy.credit_ns(ClientId::new(client))),
        [0, 0],
        "30 ms used by each, 30 given"
    );
    let _ = policy.tick(1, 3 * TICK);
    assert_eq!(policy.credit_ns(ClientId::new(1)), 0, "not charged twice");
}

/// Two clients wake at one instant, before the first has been given the processor that it asked for.
#[test]
fn tavs_1_the_next_client_to_wake_does_not_ask_for_a_processor_that_is_promised_already() {
    let setup = Setup { processors: 2, ..Setup::for_clients(5) };
    let mut policy = Credit::new(&setup, CreditSettings::XEN);
    for client in 0..5 {
        policy.add(client, 0, Share::ONE, 0);
    }
    for client in 0..2 {
        let _ = policy.wake(client, 0);
    }
    for processor in [0, 1] {
        let _ = policy.pick(processor, 0);
        let _ = policy.tick(processor, TICK);
    }
    assert_eq!([2, 3, 4].map(|client| policy.wake(client, TICK)), [Some(0), Some(1), None]);
    policy.ran(0, TICK, Stop::Preempted, TICK);
    assert_eq!(policy.pick(0, TICK).map(|decision| decision.client), Some(2));
    policy.ran(2, MS, Stop::Blocked, 11 * MS);
    let _ = policy.pick(0, 11 * MS);
    policy.ran(1, TICK, Stop::Preempted, 11 * MS);
    let _ = policy.pick(1, 11 * MS);
    assert_eq!([3, 4].map(|client| policy.priority(ClientId::new(client))), [Priority::Boost; 2]);
    assert_eq!(policy.wake(2, 11 * MS), None, "no client is worse than it");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tavs_1_hogs_have_what_their_weights_earn_within_a_slice_unless_something_is_clipped(
        weights in prop::collection::vec(1u32..=16, 2..=5)
    ) {
        assert_earned(&weights);
    }
}

/// A hog of these is 61 ms off its weight's part of the whole time: a lead of the start, and its credit at
/// the end.
#[test]
fn tavs_1_a_hog_keeps_what_it_earned_before_the_others_were_active() {
    let weights = [4, 9, 11, 13, 9];
    let (_, clipped) = hogs(CreditSettings::BASELINE, &weights, 3_000);
    assert_eq!(clipped, [0, 0], "so that what it earned is compared");
    assert_earned(&weights);
}

/// The balance: a client used what it was given, less its credit at the end, which is within a slice either
/// way.
fn assert_earned(weights: &[u32]) {
    const PERIODS: u32 = 1_000;
    let (had, clipped) = hogs(CreditSettings::BASELINE, weights, 3 * PERIODS);
    for client in (0..weights.len()).filter(|_| clipped == [0, 0]) {
        let earned = earned(weights, client, PERIODS as usize);
        let off = had[client].abs_diff(earned);
        assert!(off <= 3 * TICK, "{client} of {weights:?}: {} of {earned}", had[client]);
    }
}

/// What Xen's rule gives a hog in that number of accountings, if nothing is clipped. An accounting hands out
/// its 30 ms by the weights of the active clients, each part rounded up. A client becomes active when a tick
/// first finds it running. In the first round each runs for one slice, which is one accounting's period, in
/// order. So accounting `n` is among clients 0 to `n`, and a client that comes early earns more than its part
/// until all are active. It keeps this lead, so its part of the whole time is not a bound by itself.
fn earned(weights: &[u32], client: usize, periods: usize) -> u64 {
    let active = |period: usize| weights.iter().take(period + 1).copied().map(u64::from).sum::<u64>();
    (client..periods).map(|period| (3 * TICK * u64::from(weights[client])).div_ceil(active(period))).sum()
}

#[test]
fn tavs_1_a_weight_larger_than_all_others_together_starves_no_client() {
    let mut policy = host(3, CreditSettings::BASELINE);
    policy.set_share(0, Share::MAX, 0);
    for client in 0..3 {
        let _ = policy.wake(client, 0);
    }
    let mut now = 0;
    let had = run(&mut policy, &mut now, 30_000);
    assert!(had[1] > 0 && had[2] > 0 && had[0] > 10 * (had[1] + had[2]), "{had:?}");
}

#[test]
fn tavs_1_several_processors_share_one_queue_and_the_lowest_priority_gives_way() {
    let setup = Setup { processors: 2, ..Setup::for_clients(3) };
    let mut policy = Credit::new(&setup, CreditSettings::XEN);
    for client in 0..3 {
        policy.add(client, 0, Share::ONE, 0);
    }
    let _ = policy.wake(0, 0);
    let _ = policy.wake(1, 0);
    assert_eq!(policy.pick(0, 0).map(|decision| decision.client), Some(0));
    assert_eq!(policy.pick(1, 0).map(|decision| decision.client), Some(1));
    assert_eq!(policy.pick(1, 0), None);
    let _ = policy.tick(1, TICK);
    assert_eq!(policy.wake(2, TICK), Some(1), "0 is still boosted, 1 no longer");
}

#[test]
fn tavs_1_of_equals_the_client_on_the_woken_one_s_last_processor_gives_way() {
    for processor in [0, 1, 2] {
        let setup = Setup { processors: 3, ..Setup::for_clients(4) };
        let mut policy = Credit::new(&setup, CreditSettings::XEN);
        for client in 0..4 {
            policy.add(client, 0, Share::ONE, 0);
        }
        let _ = policy.wake(3, 0);
        let _ = policy.pick(processor, 0);
        policy.ran(3, MS, Stop::Blocked, MS);
        for client in 0..3 {
            let _ = policy.wake(client, MS);
            let _ = policy.pick(client as u16, MS);
            let _ = policy.tick(client as u16, MS);
        }
        assert_eq!(policy.wake(3, 2 * MS), Some(processor));
    }
}

fn any_parts() -> impl Strategy<Value = CreditSettings> {
    let parts = prop::collection::vec(any::<bool>(), 8);
    (parts, 1u8..=8, 0u8..=20, 0u16..=20).prop_map(
        |(on, portmap_bits, inspection_window, ports_per_slice)| {
            let tavs = TavsSettings {
                inference: on[0],
                partial_boosting: on[1],
                block_correlation: on[2],
                network_correlation: on[3],
                priority_inheritance: on[4],
                keep_on_run_queue: on[5],
                charge_driver_time: on[6],
                portmap_bits,
                inspection_window,
                ports_per_slice,
                tracked_clients: CLIENTS / 2,
                tasks_per_client: 3,
                requests_per_client: 2,
                boost_ratio: Permille::new(1000),
                ..TavsSettings::OFF
            };
            CreditSettings { precise_accounting: on[7], tavs, ..CreditSettings::XEN }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The contract's world asserts at each step; here for every combination of parts.
    #[test]
    fn tavs_1_to_7_every_combination_of_parts_keeps_the_contract(
        settings in any_parts(),
        history in steps(400),
        drivers in prop::collection::vec(0..CLIENTS + 1, 0..3),
    ) {
        let mut world = World::new(Credit::new(&setup(), settings));
        for (at, step) in history.iter().enumerate() {
            if at % 50 == 10 {
                for &client in &drivers {
                    let _ = world.policy.observe(mete_policy::Observation::Driver { client: ClientId::new(client) }, world.now);
                }
            }
            world.take(step);
        }
    }

    /// Settings that make no sense are read as the nearest settings that do.
    #[test]
    fn tavs_1_no_setting_makes_it_panic(
        tick_ns in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
        slice_ns in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
        accounting_ticks in prop_oneof![Just(0), Just(u32::MAX), 0u32..3],
        numbers in any::<[i16; 5]>(),
        boost_ratio in any::<u32>(),
        history in wild_steps(200),
    ) {
        let [positive_evidence, negative_evidence, belief_threshold, belief_min, belief_max] = numbers;
        let tavs = TavsSettings {
            positive_evidence, negative_evidence, belief_threshold, belief_min, belief_max, boost_ratio: Permille::new(boost_ratio),
            boost_max_ns: Nanoseconds::new(slice_ns), io_threshold_ns: Nanoseconds::new(tick_ns), portmap_bits: 0, inspection_window: 0,
            ..TavsSettings::ALL
        };
        let settings = CreditSettings { tick_ns: Nanoseconds::new(tick_ns), slice_ns: Nanoseconds::new(slice_ns), accounting_ticks, precise_accounting: true, tavs };
        let mut world = World::new(Credit::new(&setup(), settings));
        for step in &history {
            world.take(step);
        }
    }
}
