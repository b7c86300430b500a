//! A scheduling policy of your own, beside others. From the root of the repository:
//!
//! ```text
//! cargo run --release -p mete-bench --example own-policy
//! ```
//!
//! The policy below picks the client that is furthest behind its share. It is all that a policy needs.

use mete_bench::Beside;
use mete_policy::{
    ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop,
};
use mete_sim::{Scenario, report};

#[derive(Clone, Copy)]
struct Client {
    share: Share,
    had_ns: Nanoseconds,
    is_ready: bool,
}

struct FurthestBehind {
    clients: Vec<Client>,
    quantum_ns: Nanoseconds,
}

impl FurthestBehind {
    fn new(setup: &Setup) -> FurthestBehind {
        let new = Client { share: Share::ONE, had_ns: Nanoseconds::ZERO, is_ready: false };
        FurthestBehind { clients: vec![new; setup.clients as usize], quantum_ns: setup.quantum_ns }
    }
}

impl Policy for FurthestBehind {
    fn name(&self) -> &'static str {
        "furthest-behind"
    }
    fn add(&mut self, client: ClientId, _domain: DomainIndex, share: Share, _now: Nanoseconds) {
        self.clients[client.index()].share = share;
    }
    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        self.clients[client.index()].is_ready = false;
    }
    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        self.clients[client.index()].share = share;
    }
    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        self.clients[client.index()].is_ready = true;
        None
    }
    fn pick(&mut self, _processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        let ready = self.clients.iter_mut().enumerate().filter(|(_, client)| client.is_ready);
        let (number, client) =
            ready.min_by_key(|(_, client)| client.had_ns / u64::from(client.share.get()))?;
        client.is_ready = false;
        Some(Decision { client: ClientId::at(number), slice_ns: self.quantum_ns, grant: Grant::Share })
    }
    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        self.clients[client.index()].had_ns += ran_ns;
        self.clients[client.index()].is_ready = stop != Stop::Blocked;
    }
}

/// With all clients always ready: the errors, and a picture of which client runs when.
fn beside() -> Result<(), Box<dyn std::error::Error>> {
    let mut beside = Beside::new(&[5, 3, 2, 1], 2)?;
    beside.with(FurthestBehind::new)?;
    for name in ["vtrr", "wfq", "wrr"] {
        beside.with_named(name)?;
    }
    println!("{}", beside.table());
    std::fs::write("own-policy.svg", beside.picture())?;
    println!("\nwho runs when: own-policy.svg\n");
    Ok(())
}

/// A scenario in which clients sleep, wait for a disk and compute.
fn in_a_scenario() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::load("mix", &[])?;
    let policy = FurthestBehind::new(&scenario.setup(scenario.seed));
    let (own, ()) = report::run_under(&scenario, policy, scenario.seed, ())?;
    for client in &own.clients {
        let longest_ms = client.longest_wait_ns.as_millis_f64();
        println!(
            "{:<8} {:5.1} % of the processor, waited {longest_ms:.1} ms at most",
            client.name,
            100.0 * client.got
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    beside()?;
    in_a_scenario()
}
