//! The growth of a decision's cost: nanoseconds for `pick` and `ran` of a whole quantum, by number of
//! clients.
//!
//! ```text
//! cargo run --release -p mete-policy --example vtrr-growth [POLICY ...]
//! ```
//!
//! Measures every policy that is named (without names, virtual-time round robin in its three forms)
//! with 10, 100, 10,000 and 1,000,000 clients. Shares are drawn from 1 to 100. Clients are added in the
//! order of their numbers, so in random order of their shares. The repetitions of all measurements are
//! interleaved, so that a busy moment of the machine does not fall on one of them. The medians are
//! printed, with the smallest time in brackets.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made should stop")]

use std::hint::black_box;
use std::time::Instant;

use mete_policy::{
    ClientId, DomainIndex, Entry, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop, by_name,
};

const DECISIONS: u32 = 200_000;
const REPETITIONS: usize = 15;
const SIZES: [u32; 4] = [10, 100, 10_000, 1_000_000];

struct Measurement {
    policy: Box<dyn Policy + Send>,
    now: Nanoseconds,
    costs_ns: Vec<f64>,
}

impl Measurement {
    fn new(entry: &Entry, clients: u32) -> Measurement {
        let mut policy = (entry.make)(&Setup::for_clients(clients));
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        for client in ClientId::first(clients) {
            policy.add(
                client,
                DomainIndex::ROOT,
                Share::new(1 + random(&mut state) % 100).unwrap(),
                Nanoseconds::ZERO,
            );
            let _ = policy.wake(client, Nanoseconds::ZERO);
        }
        let mut measurement = Measurement { policy, now: Nanoseconds::ZERO, costs_ns: Vec::new() };
        measurement.decide(2 * clients.min(1_000_000));
        measurement
    }

    fn decide(&mut self, decisions: u32) {
        for _ in 0..decisions {
            let decision = self.policy.pick(ProcessorId::new(0), self.now).unwrap();
            self.now += decision.slice_ns;
            self.policy.ran(black_box(decision.client), decision.slice_ns, Stop::Expired, self.now);
        }
    }

    fn measure(&mut self) {
        let start = Instant::now();
        self.decide(DECISIONS);
        self.costs_ns.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(DECISIONS));
    }

    fn median_and_least(&mut self) -> (f64, f64) {
        self.costs_ns.sort_by(f64::total_cmp);
        (self.costs_ns[self.costs_ns.len() / 2], self.costs_ns[0])
    }
}

/// The next of Marsaglia's xorshift numbers (2003).
fn random(state: &mut u64) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 32) as u32
}

fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = ["vtrr", "vtrr-ranged", "group-vtrr"].map(String::from).to_vec();
    }
    let entries: Vec<&Entry> = names.iter().map(|name| by_name(name).expect("a policy's name")).collect();

    let mut table: Vec<Vec<Measurement>> =
        entries.iter().map(|entry| SIZES.iter().map(|&n| Measurement::new(entry, n)).collect()).collect();
    for _ in 0..REPETITIONS {
        table.iter_mut().flatten().for_each(Measurement::measure);
    }
    for (entry, row) in entries.iter().zip(&mut table) {
        print!("{:14}", entry.name);
        for (size, cell) in SIZES.iter().zip(row) {
            let (median, least) = cell.median_and_least();
            print!("  {size:>8}: {median:6.1} ns ({least:.1})");
        }
        println!();
    }
}
