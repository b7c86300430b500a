//! A policy of one's own, on the simulated machine beside others.
//!
//! ```sh
//! cargo run -p mete-sim --example own-policy -- mix
//! ```

use mete_policy::{
    ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop,
};
use mete_sim::{Report, Scenario, report};

/// Whoever is ready and has had the least service for its share.
struct LeastService {
    clients: Vec<Client>,
    quantum_ns: Nanoseconds,
}

#[derive(Clone)]
struct Client {
    share: Share,
    /// Nanoseconds, times 2²⁰, over the share: as large a share may be.
    service: u128,
    is_ready: bool,
}

impl LeastService {
    fn new(setup: &Setup) -> LeastService {
        let nobody = Client { share: Share::ONE, service: 0, is_ready: false };
        LeastService { clients: vec![nobody; setup.clients as usize], quantum_ns: setup.quantum_ns }
    }
}

impl Policy for LeastService {
    fn name(&self) -> &'static str {
        "least-service"
    }

    fn add(&mut self, client: ClientId, _domain: DomainIndex, share: Share, _now: Nanoseconds) {
        self.clients[client as usize].share = share;
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        self.clients[client as usize].is_ready = false;
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        self.clients[client as usize].share = share;
    }

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        self.clients[client as usize].is_ready = true;
        None
    }

    fn pick(&mut self, _processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        let ready = self.clients.iter_mut().enumerate().filter(|(_, client)| client.is_ready);
        let (number, client) = ready.min_by_key(|(_, client)| client.service)?;
        client.is_ready = false;
        Some(Decision { client: number as ClientId, slice_ns: self.quantum_ns, grant: Grant::Share })
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        let client = &mut self.clients[client as usize];
        client.service += (u128::from(ran_ns) << 20) / u128::from(client.share.get());
        client.is_ready = stop != Stop::Blocked;
    }
}

fn print(report: &Report) {
    println!("{}, {} decisions", report.policy, report.decisions);
    for client in &report.clients {
        let wait_ms = client.longest_wait_ns as f64 / 1e6;
        println!("  {:<12} {:6.2} %, waited {wait_ms:.1} ms at most", client.name, 100.0 * client.got);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "shares-3-2-1".into());
    let scenario = Scenario::load(&name, &[])?;
    let seed = scenario.seed;
    let (own, ()) = report::run_under(&scenario, LeastService::new(&scenario.setup(seed)), seed, ())?;
    print(&own);
    for policy in ["vtrr", "eevdf"] {
        let (other, ()) = report::run(&scenario, policy, seed, ()).ok_or("there is no such policy")??;
        print(&other);
    }
    Ok(())
}
