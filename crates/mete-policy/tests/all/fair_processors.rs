//! Several processors on one queue, against an ideal server as fast as all of them: how far the bounds
//! grow while no client's share is more than one processor.

use crate::common::plain::Policy;
use crate::ideal::{EPSILON, QUANTUM_NS, setup, share};
use mete_policy::{Setup, Stop, by_name};
use proptest::prelude::*;

/// A run on several processors that are never idle.
struct Machine {
    policy: Box<dyn mete_policy::Policy + Send>,
    shares: Vec<u32>,
    /// The client that runs on each processor, since when and until when.
    seats: Vec<(u32, u64, u64)>,
    now: u64,
    got_ns: Vec<u64>,
}

impl Machine {
    fn new(name: &str, processors: u16, shares: &[u32], parts: &mut impl Iterator<Item = u8>) -> Machine {
        let setup = Setup { processors, ..setup(shares.len() as u32) };
        let mut policy = (by_name(name).expect("it is in the catalog").make)(&setup);
        for (client, &weight) in (0..).zip(shares) {
            policy.add(client, 0, share(weight), 0);
            let _ = policy.wake(client, 0);
        }
        let mut machine = Machine {
            policy,
            shares: shares.to_vec(),
            seats: Vec::new(),
            now: 0,
            got_ns: vec![0; shares.len()],
        };
        machine.seats = (0..processors).map(|processor| machine.seat(processor, parts)).collect();
        machine
    }

    fn seat(&mut self, processor: u16, parts: &mut impl Iterator<Item = u8>) -> (u32, u64, u64) {
        let decision = self.policy.pick(processor, self.now).expect("more clients than processors");
        let part = u64::from(parts.next().unwrap_or(255)) + 1;
        (decision.client, self.now, self.now + (decision.slice_ns * part / 256).max(1))
    }

    /// Goes on to the next end of a slice.
    fn step(&mut self, parts: &mut impl Iterator<Item = u8>) {
        let next = (0..self.seats.len())
            .min_by_key(|&processor| self.seats[processor].2)
            .expect("there is a processor");
        let (client, since, until) = self.seats[next];
        self.now = until;
        self.got_ns[client as usize] += until - since;
        self.policy.ran(client, until - since, Stop::Preempted, until);
        self.seats[next] = self.seat(next as u16, parts);
    }

    /// The least and greatest error in quanta.
    fn errors(&self) -> (f64, f64) {
        let all: u32 = self.shares.iter().sum();
        let total = self.now as f64 * self.seats.len() as f64;
        let mut got: Vec<f64> = self.got_ns.iter().map(|&ns| ns as f64).collect();
        self.seats.iter().for_each(|&(client, since, _)| got[client as usize] += (self.now - since) as f64);
        let ideal = |share: u32| total * f64::from(share) / f64::from(all);
        let errors =
            got.iter().zip(&self.shares).map(|(got, &share)| (got - ideal(share)) / QUANTUM_NS as f64);
        errors.fold((0.0, 0.0), |(least, most): (f64, f64), error| (least.min(error), most.max(error)))
    }
}

/// Two to four processors, and shares of which none is more than one of them.
fn machines() -> impl Strategy<Value = (u16, Vec<u32>)> {
    (2u16..=4, prop::collection::vec(1u32..=50, 5..20)).prop_map(|(processors, mut shares)| {
        // Lowering the largest lowers the sum, so it is done until all are feasible.
        loop {
            let all: u32 = shares.iter().sum();
            let most = all / u32::from(processors);
            if shares.iter().all(|&share| share <= most) {
                return (processors, shares);
            }
            shares.iter_mut().for_each(|share| *share = (*share).min(most.max(1)));
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Policies that look at eligibility are no further ahead either.
    #[test]
    fn vtrr_7_a_feasible_share_is_at_most_a_quantum_a_processor_off(
        (processors, shares) in machines(),
        parts in prop::collection::vec(prop_oneof![Just(255), any::<u8>()], 0..300),
    ) {
        let bound = f64::from(processors) + EPSILON;
        for (name, most) in [("wfq", f64::INFINITY), ("stride", f64::INFINITY), ("wf2q+", bound), ("eevdf", bound)] {
            let mut parts = parts.iter().copied();
            let mut machine = Machine::new(name, processors, &shares, &mut parts);
            for _ in 0..400 {
                machine.step(&mut parts);
                let (behind, ahead) = machine.errors();
                prop_assert!(behind >= -bound && ahead <= most, "{name}: {behind} to {ahead} quanta");
            }
        }
    }
}
