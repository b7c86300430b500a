//! Service-time errors of simulated runs: compared with the fluid server computed naively, and with the
//! papers' simulator.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use mete_policy::{CATALOG, ClientId, DomainIndex, Grant, Nanoseconds, ProcessorId, Share, Stop, by_name};
use mete_sim::metrics::Fluid;
use mete_sim::quanta::{self, Shares};
use mete_sim::{Recorder, Scenario, report};
use proptest::prelude::*;

/// Clients 0 and 1 are in the root, 2 and 3 in domain 1, 4 and 5 in domain 2, which is in domain 1.
const DOMAINS: [usize; 6] = [0, 0, 1, 1, 2, 2];
const PARENTS: [usize; 3] = [0, 0, 1];

#[derive(Clone, Copy, Debug)]
enum Change {
    Toggle(usize),
    Share(usize, u32),
    DomainShare(usize, u32),
    Read(usize),
}

fn change() -> impl Strategy<Value = (u64, Change)> {
    let share = prop_oneof![3 => 1u32..50, 1 => Just(1u32 << 20)];
    let change = prop_oneof![
        3 => (0usize..6).prop_map(Change::Toggle),
        1 => (0usize..6, share.clone()).prop_map(|(client, share)| Change::Share(client, share)),
        1 => (1usize..3, share).prop_map(|(domain, share)| Change::DomainShare(domain, share)),
        2 => (0usize..6).prop_map(Change::Read),
    ];
    (0u64..50_000_000, change)
}

/// The same in floating point, for all clients in every interval.
struct Naive {
    processors: f64,
    shares: [f64; 6],
    domain_shares: [f64; 3],
    is_active: [bool; 6],
    due_ns: [f64; 6],
}

impl Naive {
    fn pass(&mut self, ns: u64) {
        let active = self.is_active.iter().filter(|active| **active).count() as f64;
        for client in (0..6).filter(|&client| self.is_active[client]) {
            let domain = DOMAINS[client];
            let mut part = self.shares[client] / self.competing(domain);
            let mut at = domain;
            while at != 0 {
                part *= self.domain_shares[at] / self.competing(PARENTS[at]);
                at = PARENTS[at];
            }
            self.due_ns[client] += part * ns as f64 * self.processors.min(active);
        }
    }

    fn is_used(&self, domain: usize) -> bool {
        (0..6).any(|client| self.is_active[client] && DOMAINS[client] == domain)
            || (1..3).any(|child| PARENTS[child] == domain && self.is_used(child))
    }

    fn competing(&self, domain: usize) -> f64 {
        let clients = (0..6).filter(|&client| self.is_active[client] && DOMAINS[client] == domain);
        let domains = (1..3).filter(|&child| PARENTS[child] == domain && self.is_used(child));
        clients.map(|client| self.shares[client]).sum::<f64>()
            + domains.map(|domain| self.domain_shares[domain]).sum::<f64>()
    }
}

fn share(share: u32) -> Share {
    Share::new(share).unwrap()
}

proptest! {
    #[test]
    fn the_fluid_server_is_the_naive_one_over_any_history(
        changes in prop::collection::vec(change(), 1..120),
        processors in 1u16..4,
    ) {
        let mut fluid = Fluid::new(processors);
        PARENTS[1..].iter().for_each(|&parent| fluid.add_domain(DomainIndex::new(parent as u16), Share::ONE));
        DOMAINS.iter().for_each(|&domain| fluid.add(DomainIndex::new(domain as u16), Share::ONE));
        let processors = f64::from(processors);
        let mut naive = Naive {
            processors, shares: [1.0; 6], domain_shares: [1.0; 3], is_active: [false; 6], due_ns: [0.0; 6],
        };
        let mut now_ns = 0;
        for (passed_ns, change) in changes {
            now_ns += passed_ns;
            naive.pass(passed_ns);
            match change {
                Change::Toggle(client) if naive.is_active[client] => {
                    naive.is_active[client] = false;
                    fluid.deactivate(ClientId::new(client as u32), Nanoseconds::new(now_ns));
                }
                Change::Toggle(client) => {
                    naive.is_active[client] = true;
                    fluid.activate(ClientId::new(client as u32), Nanoseconds::new(now_ns));
                }
                Change::Share(client, to) => {
                    naive.shares[client] = f64::from(to);
                    fluid.set_share(ClientId::new(client as u32), share(to), Nanoseconds::new(now_ns));
                }
                Change::DomainShare(domain, to) => {
                    naive.domain_shares[domain] = f64::from(to);
                    fluid.set_domain_share(DomainIndex::new(domain as u16), share(to), Nanoseconds::new(now_ns));
                }
                Change::Read(client) => {
                    let error_ns = fluid.error_ns(ClientId::new(client as u32), 0, Nanoseconds::new(now_ns)) as f64;
                    prop_assert!((error_ns + naive.due_ns[client]).abs() < 2.0);
                }
            }
        }
        let due_ns: f64 = (0..6).map(|client| -fluid.error_ns(ClientId::new(client), 0, Nanoseconds::new(now_ns)) as f64).sum();
        prop_assert!((due_ns - naive.due_ns.iter().sum::<f64>()).abs() < 8.0);
    }

    /// Clients that are always ready, on one processor: then the fluid server serves S/T of the time, as in
    /// the papers. The policies are those whose schedule does not depend on whether all clients come before
    /// the first one is picked.
    #[test]
    fn vtrr_4_errors_of_clients_that_are_always_ready_are_the_papers(
        weights in prop::collection::btree_set(1u32..12, 1..7),
        policy in prop::sample::select(vec!["wfq", "stride", "wrr", "drr", "rr"]),
    ) {
        // The simulated machine picks its first client as soon as that is awake, so the largest comes first.
        let weights: Vec<u32> = weights.into_iter().rev().collect();
        let shares = Shares::new(weights.iter().map(|&weight| share(weight)).collect()).unwrap();
        let mut papers = (by_name(policy).unwrap().make)(&shares.setup(1));
        let papers = quanta::run(&mut papers, &shares, 2).unwrap();

        let tasks = weights.iter().enumerate().map(|(number, share)| {
            format!("[[task]]\nname = \"{number}\"\nshare = {share}\nprogram = [{{ compute_ms = 1e7 }}]\n")
        });
        let duration_ms = 2 * 10 * shares.total();
        let head = format!("about = \"\"\nduration_ms = {duration_ms}\n");
        let text: String = std::iter::once(head).chain(tasks).collect();
        let scenario = Scenario::parse("always ready", &text, &[]).unwrap();
        let (report, ()) = report::run(&scenario, policy, 1, ()).unwrap().unwrap();
        for (client, papers) in report.clients.iter().zip(&papers.clients) {
            let in_ns = |error: i64| error as f64 / papers.total as f64;
            prop_assert!((client.error.lowest_ns as f64 - in_ns(papers.lowest)).abs() <= 1.0);
            prop_assert!((client.error.highest_ns as f64 - in_ns(papers.highest)).abs() <= 1.0);
        }
    }
}

/// The papers' formula, turn by turn.
#[derive(Default)]
struct Turns {
    had_ns: Vec<i128>,
    extremes: Vec<(i128, i128)>,
    total: i128,
    shares: Vec<i128>,
}

impl Turns {
    /// W × T − S × t (VTRR paper, §2.1).
    fn note(&mut self, client: u32, now_ns: u64) {
        let index = client as usize;
        let error = self.had_ns[index] * self.total - self.shares[index] * i128::from(now_ns);
        let (lowest, highest) = self.extremes[index];
        self.extremes[index] = (lowest.min(error), highest.max(error));
    }
}

impl Recorder for Turns {
    fn dispatched(&mut self, _: ProcessorId, client: ClientId, _: Grant, now_ns: Nanoseconds) {
        self.note(client.get(), now_ns.get());
    }

    fn stopped(
        &mut self,
        _: ProcessorId,
        client: ClientId,
        ran_ns: Nanoseconds,
        _: Stop,
        now_ns: Nanoseconds,
    ) {
        self.had_ns[client.index()] += i128::from(ran_ns);
        self.note(client.get(), now_ns.get());
    }
}

#[test]
fn vtrr_4_errors_under_every_policy_are_the_papers_formula() {
    let shares = [7, 1, 3, 3, 20];
    let tasks = shares.iter().enumerate().map(|(number, share)| {
        format!("[[task]]\nname = \"{number}\"\nshare = {share}\nprogram = [{{ compute_ms = 1e7 }}]\n")
    });
    let text: String =
        std::iter::once("about = \"\"\nduration_ms = 3000\n".to_owned()).chain(tasks).collect();
    let scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
    for entry in CATALOG {
        let turns = Turns {
            had_ns: vec![0; 5],
            extremes: vec![(0, 0); 5],
            total: shares.iter().sum(),
            shares: shares.to_vec(),
        };
        let (report, mut turns) = report::run(&scenario, entry.name, 1, turns).unwrap().unwrap();
        let total = turns.total;
        for (number, client) in (0..).zip(&report.clients) {
            // A client that runs at the end has not stopped yet, so its service is taken from the report.
            turns.had_ns[number as usize] = i128::from(client.ran_ns);
            turns.note(number, report.measured_ns.get());
            let (lowest, highest) = turns.extremes[number as usize];
            let off = |found: i64, exact: i128| (i128::from(found) * total - exact).abs();
            let name = (entry.name, number);
            assert!(off(client.error.lowest_ns, lowest) <= total, "{name:?}: {lowest} {:?}", client.error);
            assert!(off(client.error.highest_ns, highest) <= total, "{name:?}: {highest} {:?}", client.error);
        }
    }
}

fn report_of(text: &str, policy: &str) -> report::Report {
    let scenario = Scenario::parse("x.toml", text, &[]).unwrap();
    report::run(&scenario, policy, 1, ()).unwrap().unwrap().0
}

const TWO: &str = "about = \"\"\nduration_ms = 1000\n[[task]]\nname = \"a\"\nprogram = [{ compute_ms = 7 }]\n\
                   [[task]]\nname = \"b\"\nprogram = [{ compute_ms = 7 }]\n";

#[test]
fn errors_begin_anew_behind_the_warm_up_and_cancel_out() {
    for warm_up_ms in [0, 15, 333] {
        let text =
            TWO.replace("duration_ms = 1000\n", &format!("duration_ms = 1000\nwarm_up_ms = {warm_up_ms}\n"));
        let report = report_of(&text, "rr");
        let errors: Vec<_> = report.clients.iter().map(|client| client.error).collect();
        assert_eq!(errors[0].last_ns + errors[1].last_ns, 0, "{errors:?}");
        assert!(errors.iter().all(|error| error.highest_ns <= 10_000_000 && error.lowest_ns >= -10_000_000));
        assert!(errors[0].highest_ns >= 1_500_000, "{errors:?}");
    }
}

#[test]
fn what_switches_take_lowers_the_errors_of_all_unless_a_client_pays() {
    let host = |payer| format!("{TWO}[host]\nswitch_us = 1000\npayer = \"{payer}\"\n");
    let sum =
        |text: &str| report_of(text, "rr").clients.iter().map(|client| client.error.last_ns).sum::<i64>();
    let lost = report_of(&host("nobody"), "rr").times.switch_ns;
    assert!(lost > Nanoseconds::new(80_000_000));
    assert_eq!(sum(&host("nobody")), -(lost.get() as i64));
    assert_eq!(sum(&host("incoming")), 0);
}

#[test]
fn a_client_that_is_ready_beyond_the_scenarios_limit_starves() {
    let text = TWO.replace("duration_ms = 1000\n", "duration_ms = 1000\nstarvation_ms = 9\n");
    let report = report_of(&text, "rr");
    // Turns of 10 ms: 50 waits of 10 ms for each, and 1 ms of each wait is too long.
    let starved: Vec<_> = report.clients.iter().map(|client| (client.starved, client.starved_ns)).collect();
    assert_eq!(starved, [(50, Nanoseconds::from_millis(50)); 2]);
    assert!(
        report_of(TWO, "rr")
            .clients
            .iter()
            .all(|client| (client.starved, client.starved_ns) == (0, Nanoseconds::ZERO))
    );
}

#[test]
fn tavs_8_the_hit_ratio_of_boosts_is_shown_where_the_policy_counts_them() {
    let settings = ["warm_up_ms=0", "duration_ms=5000"].map(|text| text.parse().expect("key=value"));
    let scenario = Scenario::load("tavs-mixed", &settings).unwrap();
    let ratio = |policy| report::run(&scenario, policy, 1, ()).unwrap().unwrap().0.boost_hit_ratio();
    assert!(
        ratio("credit-tavs").is_some_and(|ratio| ratio > 0.0 && ratio <= 1.0),
        "{:?}",
        ratio("credit-tavs")
    );
    assert_eq!(ratio("rr"), None);
}
