//! One processor whose clients compute all the time: what a policy gives to each client, quantum by quantum.

use mete_policy::{Share, Stop};

use super::QUANTUM_NS;
use super::plain::Policy;

/// Makes these clients, in domain 0, known and ready, in the order of their numbers.
pub fn start(policy: &mut dyn Policy, shares: &[u32]) {
    for (client, &share) in (0..).zip(shares) {
        join(policy, client, 0, share);
    }
}

/// Makes one client known and ready.
pub fn join(policy: &mut dyn Policy, client: u32, domain: u16, share: u32) {
    policy.add(client, domain, Share::new(share).expect("a share"), 0);
    let _ = policy.wake(client, 0);
}

/// One processor with a policy, and what each client has had of it.
pub struct Line<P> {
    pub policy: P,
    pub served_ns: Vec<u64>,
    pub now: u64,
}

impl<P: Policy> Line<P> {
    /// A processor for these clients, all ready.
    pub fn new(mut policy: P, shares: &[u32]) -> Line<P> {
        start(&mut policy, shares);
        Line { policy, served_ns: vec![0; shares.len()], now: 0 }
    }

    /// Runs the client that is picked for its slice; answers the client and the number of quanta.
    pub fn step(&mut self) -> (u32, u64) {
        let decision = self.policy.pick(0, self.now).expect("a client is ready");
        self.end(decision.client, decision.slice_ns, Stop::Expired);
        (decision.client, decision.slice_ns / QUANTUM_NS)
    }

    /// The client that runs in each of the next quanta, as letters from A on.
    pub fn letters(&mut self, quanta: usize) -> String {
        let mut letters = String::new();
        while letters.len() < quanta {
            let (client, length) = self.step();
            letters.extend((0..length).map(|_| char::from(b'A' + client as u8)));
        }
        letters
    }

    /// Runs the clients that are picked, quantum by quantum, up to this time; `each` is called after every
    /// quantum.
    pub fn run_until(&mut self, end_ns: u64, mut each: impl FnMut(&[u64])) {
        while self.now < end_ns {
            let decision = self.policy.pick(0, self.now).expect("a client is ready");
            let mut left_ns = decision.slice_ns;
            while left_ns > 0 {
                let part_ns = left_ns.min(QUANTUM_NS);
                left_ns -= part_ns;
                self.served_ns[decision.client as usize] += part_ns;
                self.now += part_ns;
                each(&self.served_ns);
            }
            self.policy.ran(decision.client, decision.slice_ns, Stop::Expired, self.now);
        }
    }

    /// A client that was picked stops after `ran_ns`.
    pub fn end(&mut self, client: u32, ran_ns: u64, stop: Stop) {
        self.now += ran_ns;
        self.served_ns[client as usize] += ran_ns;
        self.policy.ran(client, ran_ns, stop, self.now);
    }

    /// What a client has had, in quanta.
    pub fn quanta(&self, client: usize) -> f64 {
        self.served_ns[client] as f64 / QUANTUM_NS as f64
    }
}
