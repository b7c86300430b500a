//! The order of one instant, and what follows from it for policies whose ticks and slices coincide.

use std::cell::RefCell;
use std::rc::Rc;

use mete_policy::{
    ClientId, Decision, DomainIndex, Nanoseconds, Policy, ProcessorId, RoundRobin, Share, Stop,
};
use mete_sim::{Scenario, Stalled, report};

const MS: Nanoseconds = Nanoseconds::new(1_000_000);

/// Every call, with its time in ms.
type Calls = Rc<RefCell<Vec<String>>>;

/// Round robin with ticks as long as its slices. It notes all calls.
struct Scribe {
    policy: RoundRobin,
    calls: Calls,
}

impl Scribe {
    fn note(&self, what: &str, number: u32, now: Nanoseconds) {
        self.calls.borrow_mut().push(format!("{} {what} {number}", now / MS));
    }
}

impl Policy for Scribe {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, now: Nanoseconds) {
        self.policy.add(client, domain, share, now);
    }

    fn remove(&mut self, client: ClientId, now: Nanoseconds) {
        self.policy.remove(client, now);
    }

    fn set_share(&mut self, client: ClientId, share: Share, now: Nanoseconds) {
        self.policy.set_share(client, share, now);
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        self.note("wake", client.get(), now);
        self.policy.wake(client, now)
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        self.note("pick", processor.get().into(), now);
        self.policy.pick(processor, now)
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        self.note("ran", client.get(), now);
        self.policy.ran(client, ran_ns, stop, now);
    }

    fn tick_ns(&self) -> Option<Nanoseconds> {
        Some(10 * MS)
    }

    fn tick(&mut self, processor: ProcessorId, now: Nanoseconds) -> bool {
        self.note("tick", processor.get().into(), now);
        false
    }
}

fn calls(text: &str) -> Vec<String> {
    let scenario = Scenario::parse("test", text, &[]).expect("it is right");
    let calls = Calls::default();
    let policy = Scribe { policy: RoundRobin::new(&scenario.setup(0)), calls: Rc::clone(&calls) };
    scenario.host(policy, (), 0).run_until(scenario.duration_ns).expect("time goes on");
    calls.take()
}

#[test]
fn new_1_all_wake_ups_of_the_first_instant_come_before_its_first_pick() {
    let calls = calls(
        "about = \"\"\nduration_ms = 1\n[[task]]\nname = \"hog\"\ncount = 3\nprogram = [{ compute_ms = 100 }]\n",
    );
    assert_eq!(calls, ["0 wake 0", "0 wake 1", "0 wake 2", "0 pick 0"]);
}

/// At 10 ms both slices end, a sleep ends, and ticks are due.
#[test]
fn new_1_ticks_come_before_wake_ups_these_before_ends_of_slices_and_picks_last() {
    let calls = calls(
        "about = \"\"\nduration_ms = 11\nhost = { processors = 2 }\n\
         [[task]]\nname = \"hog\"\ncount = 2\nprogram = [{ compute_ms = 100 }]\n\
         [[task]]\nname = \"late\"\nstart_ms = 10\nprogram = [{ compute_ms = 100 }]\n",
    );
    let at_ten: Vec<_> = calls.iter().filter_map(|call| call.strip_prefix("10 ")).collect();
    assert_eq!(at_ten, ["tick 0", "tick 1", "wake 2", "ran 0", "ran 1", "pick 0", "pick 1"]);
}

/// What each of these hogs got under a policy, by their shares.
fn hogs(policy: &str, settings: &str, switch_us: u32, shares: &[u32]) -> Result<Vec<f64>, Stalled> {
    let mut text = format!(
        "about = \"\"\nduration_ms = 120_000\nhost = {{ switch_us = {switch_us} }}\n[policy.credit]\n{settings}\n"
    );
    for (number, share) in shares.iter().enumerate() {
        text += &format!(
            "[[task]]\nname = \"hog {number}\"\nshare = {share}\nprogram = [{{ compute_ms = 1000 }}]\n"
        );
    }
    let scenario = Scenario::parse("test", &text, &[]).expect("it is right");
    let (report, ()) = report::run(&scenario, policy, 1, ()).expect("it is in the catalog")?;
    let all: f64 = report.clients.iter().map(|client| client.got).sum();
    Ok(report.clients.iter().map(|client| client.got / all).collect())
}

/// Slices are as long as three ticks, so the end of every slice falls on a tick, and every accounting falls
/// on the end of a slice. The client that is picked then must be picked by the result of that accounting.
#[test]
fn tavs_1_two_hogs_get_their_weights_parts_where_slices_end_on_ticks() {
    for (policy, settings) in [("credit", ""), ("credit", "precise_accounting = true"), ("credit-tavs", "")] {
        for weight in [1, 2, 3, 4, 6, 8, 12, 16] {
            let part = 1.0 / f64::from(1 + weight);
            // With switches, slices drift against ticks, and clipping takes credit from clients that have
            // saved it up.
            for (switch_us, most_off) in [(0, 0.001), (5, 0.001), (50, 0.01), (200, 0.01)] {
                let got = hogs(policy, settings, switch_us, &[256, 256 * weight]).expect("time goes on");
                let off = (got[0] - part).abs();
                assert!(off <= most_off, "{policy} {settings} 1:{weight}, {switch_us} us: {got:?}");
            }
        }
    }
}

/// 12 quanta, two cycles: each client has exactly its share, in any order in the file.
#[test]
fn vtrr_2_clients_that_all_wake_at_the_first_instant_have_their_shares_at_each_cycles_end() {
    for shares in [[1, 2, 3], [3, 2, 1], [2, 3, 1]] {
        let mut text = "about = \"\"\nduration_ms = 120\n".to_owned();
        for share in shares {
            text += &format!(
                "[[task]]\nname = \"{share}\"\nshare = {share}\nprogram = [{{ compute_ms = 1000 }}]\n"
            );
        }
        let scenario = Scenario::parse("test", &text, &[]).expect("it is right");
        for policy in ["vtrr", "vtrr-ranged", "group-vtrr"] {
            let (report, ()) =
                report::run(&scenario, policy, 1, ()).expect("it is known").expect("time goes on");
            let sixths: Vec<_> =
                report.clients.iter().map(|client| (client.got * 6.0 * 1e9).round()).collect();
            assert_eq!(sixths, shares.map(|share| f64::from(share) * 1e9), "{policy}");
        }
    }
}

/// Two clients wake at one instant while less urgent ones run on both processors: both run at once, not only
/// one.
#[test]
fn tavs_1_two_that_wake_at_one_instant_take_two_processors() {
    let text = "about = \"\"\nduration_ms = 26\nhost = { processors = 2 }\n\
         [[task]]\nname = \"hog\"\ncount = 2\nprogram = [{ compute_ms = 100 }]\n\
         [[task]]\nname = \"late\"\ncount = 2\nstart_ms = 25\nprogram = [{ compute_ms = 100 }]\n";
    let scenario = Scenario::parse("test", text, &[]).expect("it is right");
    let (report, ()) = report::run(&scenario, "credit", 1, ()).expect("it is known").expect("time goes on");
    let had_ms: Vec<_> = report.clients.iter().map(|client| (client.got * 52.0).round()).collect();
    assert_eq!(had_ms, [25.0, 25.0, 1.0, 1.0]);
}
