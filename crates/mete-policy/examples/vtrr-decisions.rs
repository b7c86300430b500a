//! Decisions of the policy that runs inside the kernel, to count the instructions of each.
//!
//! ```text
//! cargo build --release -p mete-policy --example vtrr-decisions
//! valgrind --tool=callgrind target/release/examples/vtrr-decisions PROCESSORS CLIENTS DECISIONS
//! ```
//!
//! Two domains with shares of 2 and 1 have CLIENTS each for each processor, which compute all the time. The
//! difference of two runs, divided by that of their decisions, is what one costs.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made should stop")]

use mete_policy::{ClientId, DomainIndex, KernelVtrr, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

const QUANTUM_NS: Nanoseconds = Nanoseconds::new(1_000_000);
const NOW: Nanoseconds = Nanoseconds::ZERO;

fn main() {
    let numbers: Vec<u32> = std::env::args().skip(1).map(|text| text.parse().unwrap()).collect();
    let [processors, clients, decisions] = numbers[..] else { panic!("PROCESSORS CLIENTS DECISIONS") };
    let mut policy = policy(processors as u16, 2 * clients * processors);
    let mut running: Vec<Option<ClientId>> = vec![None; processors as usize];
    for decision in 0..decisions {
        let processor = decision % processors;
        let runs = &mut running[processor as usize];
        if let Some(client) = *runs {
            policy.ran(client, QUANTUM_NS, Stop::Expired, NOW);
        }
        *runs = policy.pick(ProcessorId::new(processor as u16), NOW).map(|decision| decision.client);
    }
    println!("{running:?}");
}

fn policy(processors: u16, clients: u32) -> KernelVtrr {
    let setup = Setup { processors, domains: 3, quantum_ns: QUANTUM_NS, ..Setup::for_clients(clients) };
    let mut policy = KernelVtrr::new(&setup);
    for (domain, share) in [(1, 200), (2, 100)] {
        policy.add_domain(DomainIndex::new(domain), DomainIndex::ROOT, Share::new(share).unwrap());
    }
    for client in 0..clients {
        let domain = DomainIndex::new(1 + (client % 2) as u16);
        policy.add(ClientId::new(client), domain, Share::ONE, NOW);
        let _ = policy.wake(ClientId::new(client), NOW);
    }
    policy
}
