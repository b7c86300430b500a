//! How many decisions a second the machine makes if all clients only compute.
//!
//! ```sh
//! cargo run --release -p mete-sim --example decisions -- rr 100
//! ```

use std::time::Instant;

use mete_policy::{ClientId, DomainIndex, Nanoseconds, Setup, Share, by_name};
use mete_sim::{Context, Hardware, Host, Model, Reaction, Step};

/// Every client computes for ever.
struct Hogs;

impl Model for Hogs {
    type Signal = ();
    type Event = ();

    fn next(&mut self, _client: ClientId, _context: &mut Context<Self>) -> Step {
        Step::Compute(Nanoseconds::MAX)
    }

    fn advance(&mut self, _client: ClientId, _ran_ns: Nanoseconds) {}

    fn deliver(&mut self, _client: ClientId, (): (), _context: &mut Context<Self>) -> Reaction {
        Reaction::Pending
    }

    fn event(&mut self, (): (), _context: &mut Context<Self>) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let policy = arguments.next().unwrap_or_else(|| "rr".into());
    let clients = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let entry = by_name(&policy).ok_or("there is no such policy")?;
    let setup = Setup::for_clients(clients);
    let mut host = Host::new(Hardware::default(), (entry.make)(&setup), Hogs, ());
    for client in 0..clients {
        host.add(
            ClientId::new(client),
            DomainIndex::new(0),
            Share::new(1 + client % 100).ok_or("no share")?,
            Nanoseconds::ZERO,
        );
    }
    let begun = Instant::now();
    host.run_until(20_000_000 * setup.quantum_ns)?;
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{policy}, {clients} clients: {:.1} million decisions a second",
        host.decisions() as f64 / seconds / 1e6
    );
    Ok(())
}
