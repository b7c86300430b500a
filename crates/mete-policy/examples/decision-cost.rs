//! The cost of a decision (pick, charge, requeue), compared with a pop and a push of a bare binary heap.
//!
//! `cargo run --release -p mete-policy --example decision-cost [CLIENTS [SHARES [POLICY...]]]`: nanoseconds.
//! Shares are `uniform` (1 to 50, the default), `equal`, or `tail` (a tenth has 100, the others 1). All
//! subjects are measured in turn, many times, and the least time counts. So other work on the machine affects
//! all of them equally. The bare heap has keys of the same size (16 bytes) and pushes what it popped plus a
//! client's step: weighted fair queueing without its bookkeeping.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use mete_policy::{
    CATALOG, ClientId, DomainIndex, Eevdf, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop, Stride,
    Wf2q, Wfq,
};

const ROUNDS: u32 = 31;
/// The number of calls doubles until a round takes this long.
const ROUND: Duration = Duration::from_millis(4);

/// Makes that number of calls.
type Calls = Box<dyn FnMut(u32)>;

/// A subject of the measurement.
struct Subject {
    name: String,
    calls: Calls,
    a_round: u32,
    least_ns: f64,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let clients = arguments.next().map_or(Ok(10_000), |text| text.parse()).unwrap_or_else(|error| {
        eprintln!("decision-cost: the number of clients: {error}");
        std::process::exit(2)
    });
    let shares =
        arguments.next().map_or(Ok(uniform as Shares), |name| shares(&name)).unwrap_or_else(|name| {
            eprintln!("decision-cost: no such shares: {name}; there are uniform, equal and tail");
            std::process::exit(2)
        });
    let wanted: Vec<String> = arguments.collect();
    let mut subjects =
        subjects(clients, shares, |name| wanted.is_empty() || wanted.iter().any(|each| each == name));
    for _ in 0..ROUNDS {
        subjects.iter_mut().for_each(Subject::measure);
    }
    let bare_ns = subjects[0].least_ns;
    for Subject { name, least_ns, .. } in &subjects {
        println!("{name:>24} {least_ns:8.1}  {:5.2} x", least_ns / bare_ns);
    }
}

/// The bare heap, some policies that are called directly, and those of the catalog, called through their box.
fn subjects(clients: u32, shares: Shares, wanted: impl Fn(&str) -> bool) -> Vec<Subject> {
    let setup = Setup::for_clients(clients);
    let mut subjects = vec![Subject::new("bare heap, pop and push", bare_heap(clients, shares))];
    let direct: [(&str, Calls); 4] = [
        ("wfq", decisions(Wfq::new(&setup), clients, shares)),
        ("wf2q+", decisions(Wf2q::new(&setup), clients, shares)),
        ("stride", decisions(Stride::new(&setup), clients, shares)),
        ("eevdf", decisions(Eevdf::new(&setup), clients, shares)),
    ];
    for (name, calls) in direct {
        if wanted(name) {
            subjects.push(Subject::new(&format!("{name}, direct"), calls));
        }
    }
    for entry in CATALOG.iter().filter(|entry| wanted(entry.name)) {
        subjects.push(Subject::new(entry.name, decisions((entry.make)(&setup), clients, shares)));
    }
    subjects
}

impl Subject {
    fn new(name: &str, mut calls: Calls) -> Subject {
        let mut a_round = 64;
        while time(&mut calls, a_round) < ROUND {
            a_round *= 2;
        }
        Subject { name: name.to_owned(), calls, a_round, least_ns: f64::INFINITY }
    }

    fn measure(&mut self) {
        let spent = time(&mut self.calls, self.a_round);
        self.least_ns = self.least_ns.min(spent.as_nanos() as f64 / f64::from(self.a_round));
    }
}

fn time(calls: &mut dyn FnMut(u32), number: u32) -> Duration {
    let start = Instant::now();
    calls(number);
    start.elapsed()
}

/// A client's share.
type Shares = fn(u32) -> u32;

fn shares(name: &str) -> Result<Shares, String> {
    match name {
        "uniform" => Ok(uniform),
        "equal" => Ok(|_| 5),
        "tail" => Ok(|client| if scattered(client).is_multiple_of(10) { 100 } else { 1 }),
        _ => Err(name.to_owned()),
    }
}

fn uniform(client: u32) -> u32 {
    1 + scattered(client) % 50
}

/// A number that has no order over clients.
fn scattered(client: u32) -> u32 {
    client.wrapping_mul(2_654_435_761)
}

fn decisions(mut policy: impl Policy + 'static, clients: u32, shares: Shares) -> Calls {
    for client in ClientId::first(clients) {
        policy.add(
            client,
            DomainIndex::ROOT,
            Share::new(shares(client.get())).unwrap_or(Share::ONE),
            Nanoseconds::ZERO,
        );
        let _ = policy.wake(client, Nanoseconds::ZERO);
    }
    let mut now = Nanoseconds::ZERO;
    Box::new(move |number| {
        for _ in 0..number {
            let Some(decision) = policy.pick(ProcessorId::new(0), now) else { return };
            now += decision.slice_ns;
            policy.ran(decision.client, decision.slice_ns, Stop::Expired, now);
        }
    })
}

fn bare_heap(clients: u32, shares: Shares) -> Calls {
    let step = |client: u32| (10_000_000u64 << 20) / u64::from(shares(client));
    let steps: Vec<u64> = (0..clients).map(step).collect();
    let mut heap: BinaryHeap<_> = (0..clients).map(|client| Reverse((step(client), client))).collect();
    Box::new(move |number| {
        for _ in 0..number {
            let Some(Reverse((time, client))) = heap.pop() else { return };
            heap.push(Reverse((black_box(time + steps[client as usize]), client)));
        }
    })
}
