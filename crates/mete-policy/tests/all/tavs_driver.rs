//! TAVS-6 and TAVS-7: the driver domain's priority, its clients' turns, and the payment for its work.

use crate::common::plain::Policy;
use mete_policy::credit::Priority;
use mete_policy::{
    ClientId, Credit, CreditSettings, Nanoseconds, Observation, Setup, Share, Stop, TavsSettings,
};

const MS: u64 = 1_000_000;
const DRIVER: u32 = 0;

struct Host {
    policy: Credit,
    now: u64,
}

impl Host {
    /// A driver and two other clients; all blocked, all with zero credit.
    fn with(tavs: TavsSettings) -> Host {
        let settings = CreditSettings { tavs, ..CreditSettings::BASELINE };
        let mut policy = Credit::new(&Setup::for_clients(4), settings);
        for client in 0..4 {
            policy.add(client, 0, Share::ONE, 0);
        }
        let _ = policy.observe(Observation::Driver { client: ClientId::new(DRIVER) }, 0);
        Host { policy, now: 0 }
    }

    /// The driver has used more than its credit.
    fn with_an_indebted_driver(tavs: TavsSettings) -> Host {
        let mut host = Host::with(tavs);
        host.wake(DRIVER);
        host.pick(DRIVER);
        // A tick finds it running: it is active.
        let _ = host.policy.tick(0, 0);
        host.ran(DRIVER, 60 * MS, Stop::Blocked);
        host.account();
        assert_eq!(host.policy.priority(ClientId::new(DRIVER)), Priority::Over);
        host
    }

    fn account(&mut self) {
        for _ in 0..3 {
            let _ = self.policy.tick(0, self.now);
        }
    }

    fn wake(&mut self, client: u32) -> Option<u16> {
        self.policy.wake(client, self.now)
    }

    fn pick(&mut self, client: u32) -> u64 {
        let decision = self.policy.pick(0, self.now).expect("a client is ready");
        assert_eq!(decision.client, client);
        decision.slice_ns
    }

    fn ran(&mut self, client: u32, ran_ns: u64, stop: Stop) {
        self.now += ran_ns;
        self.policy.ran(client, ran_ns, stop, self.now);
    }

    fn notify(&mut self, from: u32) -> Option<u16> {
        self.policy
            .observe(Observation::Notify { from: ClientId::new(from), to: ClientId::new(DRIVER) }, self.now)
    }

    fn priority(&self) -> Priority {
        self.policy.priority(ClientId::new(DRIVER))
    }

    fn counter(&self, wanted: &str) -> u64 {
        let mut found = 0;
        self.policy.counters(&mut |name, value| found += if name == wanted { value } else { 0 });
        found
    }
}

const INHERITANCE: TavsSettings = TavsSettings { priority_inheritance: true, ..TavsSettings::OFF };
const KEEP: TavsSettings = TavsSettings { keep_on_run_queue: true, ..TavsSettings::OFF };
const CHARGE: TavsSettings = TavsSettings { charge_driver_time: true, ..TavsSettings::OFF };

#[test]
fn tavs_6_the_driver_inherits_a_requesters_priority_until_it_is_descheduled() {
    let mut host = Host::with_an_indebted_driver(INHERITANCE);
    host.wake(DRIVER);
    assert_eq!(host.priority(), Priority::Over, "no credit, no wake-up boost");
    host.wake(1);
    host.pick(1);
    assert_eq!(host.notify(1), None, "as high as the running client is not higher");
    assert_eq!(host.priority(), Priority::Boost);
    host.wake(2);
    host.ran(1, MS, Stop::Blocked);
    host.pick(DRIVER);
    host.ran(DRIVER, MS, Stop::Preempted);
    assert_eq!(host.priority(), Priority::Over, "its own priority again");
    assert_eq!(host.counter("inheritances"), 1);
}

#[test]
fn tavs_6_without_inheritance_a_request_leaves_the_driver_behind_those_with_credit() {
    let mut host = Host::with_an_indebted_driver(TavsSettings::OFF);
    host.wake(DRIVER);
    host.wake(1);
    host.pick(1);
    let _ = host.notify(1);
    host.wake(2);
    host.ran(1, MS, Stop::Blocked);
    host.pick(2);
}

#[test]
fn tavs_6_the_highest_of_several_requesters_counts() {
    let mut host = Host::with_an_indebted_driver(INHERITANCE);
    host.wake(DRIVER);
    host.wake(1);
    host.pick(1);
    let _ = host.policy.tick(0, host.now);
    host.wake(2);
    assert_eq!(
        [1, 2].map(|client| host.policy.priority(ClientId::new(client))),
        [Priority::Under, Priority::Boost]
    );
    let _ = host.notify(1);
    assert_eq!(host.priority(), Priority::Under);
    assert_eq!(host.notify(2), None, "it is as high as 2, which has been promised the processor");
    assert_eq!(host.priority(), Priority::Boost);
    let _ = host.notify(1);
    assert_eq!((host.priority(), host.counter("inheritances")), (Priority::Boost, 2));
}

#[test]
fn tavs_6_a_blocked_driver_wakes_with_the_priority_that_it_inherited() {
    let mut host = Host::with_an_indebted_driver(INHERITANCE);
    host.wake(1);
    host.pick(1);
    let _ = host.notify(1);
    host.wake(DRIVER);
    assert_eq!(host.priority(), Priority::Boost);
}

#[test]
fn tavs_6_only_drivers_inherit_and_drivers_do_not_inherit_from_each_other() {
    let mut host = Host::with_an_indebted_driver(INHERITANCE);
    host.wake(1);
    host.pick(1);
    let _ = host.policy.observe(Observation::Driver { client: ClientId::new(1) }, host.now);
    let _ = host.notify(1);
    assert_eq!(host.priority(), Priority::Over);
    let before = host.policy.priority(ClientId::new(2));
    let _ =
        host.policy.observe(Observation::Notify { from: ClientId::new(1), to: ClientId::new(2) }, host.now);
    assert_eq!(host.policy.priority(ClientId::new(2)), before);
}

#[test]
fn tavs_6_an_inherited_boost_ends_with_a_tick_like_any_other() {
    let mut host = Host::with_an_indebted_driver(INHERITANCE);
    host.wake(DRIVER);
    host.wake(1);
    host.pick(1);
    let _ = host.notify(1);
    host.ran(1, MS, Stop::Blocked);
    host.pick(DRIVER);
    let _ = host.policy.tick(0, host.now);
    assert_eq!(host.priority(), Priority::Under);
}

/// Figure 8: the driver interrupts client 1; does that or client 2 go on?
#[test]
fn tavs_6_a_client_that_the_driver_preempts_keeps_its_place_and_the_rest_of_its_slice() {
    for (tavs, next, slice_ns) in [(KEEP, 1, 18 * MS), (TavsSettings::OFF, 2, 30 * MS)] {
        let mut host = Host::with(tavs);
        for client in [1, 2] {
            host.wake(client);
            host.pick(client);
            let _ = host.policy.tick(0, host.now);
            host.ran(client, MS, Stop::Preempted);
        }
        host.pick(1);
        assert_eq!(host.wake(DRIVER), Some(0));
        host.ran(1, 12 * MS, Stop::Preempted);
        host.pick(DRIVER);
        host.ran(DRIVER, MS, Stop::Blocked);
        assert_eq!(host.pick(next), slice_ns);
        assert_eq!(host.counter("kept_on_run_queue"), u64::from(next == 1));
    }
}

#[test]
fn tavs_6_only_the_driver_leaves_others_their_place() {
    let mut host = Host::with(KEEP);
    host.wake(1);
    host.pick(1);
    host.account();
    assert_eq!(host.wake(2), Some(0));
    host.ran(1, 12 * MS, Stop::Preempted);
    host.pick(2);
    host.ran(2, MS, Stop::Blocked);
    assert_eq!(host.pick(1), 30 * MS, "preempted by another guest, it has lost its turn");
    assert_eq!(host.counter("kept_on_run_queue"), 0);
}

#[test]
fn tavs_6_a_slice_interrupted_often_is_still_one_slice() {
    let mut host = Host::with(KEEP);
    host.wake(1);
    host.pick(1);
    host.account();
    let mut slices = Vec::new();
    for _ in 0..4 {
        assert_eq!(host.wake(DRIVER), Some(0));
        host.ran(1, 7 * MS, Stop::Preempted);
        host.pick(DRIVER);
        host.ran(DRIVER, 0, Stop::Blocked);
        slices.push(host.pick(1));
    }
    assert_eq!(slices, [23 * MS, 16 * MS, 9 * MS, 2 * MS]);
    host.ran(1, 2 * MS, Stop::Expired);
    assert_eq!(host.pick(1), 30 * MS);
}

#[test]
fn tavs_7_the_clients_that_the_driver_worked_for_pay_for_its_time() {
    let mut host = Host::with(CHARGE);
    host.wake(DRIVER);
    host.pick(DRIVER);
    for (client, used_ns) in [(1, 3 * MS), (2, MS)] {
        let spent = Observation::DriverTime {
            driver: ClientId::new(DRIVER),
            client: ClientId::new(client),
            used_ns: Nanoseconds::new(used_ns),
        };
        let _ = host.policy.observe(spent, host.now);
    }
    host.ran(DRIVER, 5 * MS, Stop::Blocked);
    let credits = [DRIVER, 1, 2].map(|client| host.policy.credit_ns(ClientId::new(client)));
    assert_eq!(credits, [-1_000_000, -3_000_000, -1_000_000], "it pays only for what belongs to no client");
    assert_eq!(host.counter("driver_charged_ns"), 4 * MS);
}

#[test]
fn tavs_7_no_credit_moves_while_the_part_is_off_or_between_clients_it_does_not_concern() {
    let mut host = Host::with(TavsSettings::OFF);
    let time = |driver, client| Observation::DriverTime { driver, client, used_ns: Nanoseconds::new(MS) };
    let _ = host.policy.observe(time(ClientId::new(DRIVER), ClientId::new(1)), 0);
    assert_eq!(host.policy.credit_ns(ClientId::new(1)), 0);
    let mut host = Host::with(CHARGE);
    for (driver, client) in [(1, 2), (DRIVER, DRIVER), (DRIVER, 99), (99, 1)] {
        let _ = host.policy.observe(time(ClientId::new(driver), ClientId::new(client)), 0);
    }
    assert_eq!([DRIVER, 1, 2].map(|client| host.policy.credit_ns(ClientId::new(client))), [0; 3]);
}

/// A decision that is not carried out loses neither the place nor the rest of the slice.
#[test]
fn tavs_6_a_decision_that_is_given_back_keeps_the_place_and_the_rest_of_the_slice() {
    let mut host = Host::with(KEEP);
    for client in [1, 2] {
        host.wake(client);
        host.pick(client);
        let _ = host.policy.tick(0, host.now);
        host.ran(client, MS, Stop::Preempted);
    }
    host.pick(1);
    assert_eq!(host.wake(DRIVER), Some(0));
    host.ran(1, 12 * MS, Stop::Preempted);
    host.pick(DRIVER);
    host.ran(DRIVER, MS, Stop::Blocked);
    for _ in 0..3 {
        assert_eq!(host.pick(1), 18 * MS);
        host.ran(1, 0, Stop::Preempted);
    }
}

/// A driver's borrowed priority lasts until it has run.
#[test]
fn tavs_6_a_driver_that_is_given_back_keeps_the_inherited_priority() {
    let mut host = Host::with_an_indebted_driver(INHERITANCE);
    host.wake(1);
    host.pick(1);
    host.wake(DRIVER);
    let _ = host.notify(1);
    host.ran(1, MS, Stop::Blocked);
    host.pick(DRIVER);
    host.ran(DRIVER, 0, Stop::Preempted);
    assert_eq!(host.priority(), Priority::Boost);
    host.pick(DRIVER);
    host.ran(DRIVER, MS, Stop::Preempted);
    assert_eq!(host.priority(), Priority::Over);
}
