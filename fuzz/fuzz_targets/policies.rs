//! Any bytes as calls to any policy in the catalog: it keeps to what the interface promises, whatever
//! the clients, shares and times. The checks are those of the policies' own tests.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mete_policy::{CATALOG, Nanoseconds, Policy, Setup};
use world::{Step, World};

#[path = "../../crates/mete-policy/tests/all/common/world.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod world;

/// The input, read from the front; zeros once it is used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A length of time of any order of magnitude, and the ends of the range.
    fn time(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX,
            254 => u64::MAX / 2,
            253 => self.word(),
            small @ 0..32 => small.into(),
            scale => u64::from(self.byte()) << (scale % 57),
        }
    }

    fn share(&mut self) -> u32 {
        match self.byte() {
            255 => 1 << 20,
            large @ 200..=254 => u32::from(self.byte()) << (large % 13),
            small => small.into(),
        }
    }

    /// A number that is rarely out of range.
    fn number(&mut self, range: u32) -> u32 {
        match self.byte() {
            255 => u32::MAX,
            254 => range,
            some => u32::from(some) % range.max(1),
        }
    }

    fn step(&mut self, setup: &Setup) -> Step {
        let processor = |bytes: &mut Self| bytes.number(setup.processors.into()) as u16;
        let domain = |bytes: &mut Self| bytes.number(setup.domains.into()) as u16;
        let client = |bytes: &mut Self| bytes.number(setup.clients);
        match self.byte() % 24 {
            0 | 1 => Step::Add(client(self), domain(self), self.share()),
            2 => Step::Remove(client(self)),
            3 => Step::Share(client(self), self.share()),
            4 => Step::AddDomain(domain(self), domain(self), self.share()),
            5 if self.byte() % 2 == 0 => Step::RemoveDomain(domain(self)),
            5 => Step::DomainShare(domain(self), self.share()),
            6..=8 => Step::Wake(client(self)),
            9 | 10 => Step::WakeAndObey(client(self)),
            11..=14 => Step::Pick(processor(self)),
            15..=17 => Step::Ran(client(self), self.byte(), self.byte()),
            18 => Step::RanFor(client(self), self.time(), self.byte()),
            19 => Step::GiveBack(processor(self)),
            20 => Step::Tick(processor(self)),
            21 => Step::Observe(self.byte(), client(self), self.byte().into()),
            22 => Step::Pass(self.byte()),
            _ if self.byte() % 2 == 0 => Step::Clock(self.time()),
            _ => Step::Late(self.time()),
        }
    }

    fn setup(&mut self) -> Setup {
        Setup {
            clients: u32::from(self.byte() % 40),
            domains: u16::from(self.byte() % 6),
            processors: u16::from(self.byte() % 5),
            quantum_ns: Nanoseconds::new(self.time()),
            seed: self.byte().into(),
        }
    }
}

/// Runs the history on a new policy; the world panics where the policy breaks its word.
fn run(make: fn(&Setup) -> Box<dyn Policy + Send>, bytes: &[u8]) -> Vec<world::Answer> {
    let mut bytes = Bytes(bytes);
    let setup = bytes.setup();
    let mut world = World::with(make(&setup), setup);
    while !bytes.0.is_empty() {
        let step = bytes.step(&setup);
        world.take(&step);
    }
    world.policy.counters(&mut |name, _| assert!(!name.is_empty()));
    world.answers
}

fuzz_target!(|bytes: &[u8]| {
    let [which, rest @ ..] = bytes else { return };
    let entry = &CATALOG[usize::from(which % 128) % CATALOG.len()];
    let answers = run(entry.make, rest);
    // For half of the inputs, so that the other half is twice as fast.
    if *which >= 128 {
        assert_eq!(answers, run(entry.make, rest), "{}: the same calls, the same answers", entry.name);
    }
});
