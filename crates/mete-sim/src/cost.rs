//! What a decision of a policy costs in processor time on this machine. A clock measures it, so it is the
//! only figure here that differs between runs.
//!
//! ```text
//!   run ──▶ Tape: every call, in its order ──▶ a fresh policy: the same calls once more, timed together
//! ```
//!
//! The calls of a run are given to a new policy without the machine between them. The measurement covers all
//! that the policy does for a decision: picking, charging, waking, ticks and observations, with its data as
//! warm in the caches as they are when nothing else runs. It includes the loop over the calls, about a
//! nanosecond a call. It does not include the simulated machine or the reading of the clock.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

use mete_policy::{
    ClientId, Decision, DomainIndex, Entry, Nanoseconds, Observation, Policy, ProcessorId, Share, Stop,
    each_policy_call,
};

use crate::host::Stalled;
use crate::report::run_under;
use crate::scenario::Scenario;

/// At most this number of calls is kept; later calls are not measured.
const MOST_CALLS: usize = 2_000_000;
/// How often the calls are timed. The quickest time counts, because others were disturbed.
const ROUNDS: usize = 3;

/// An answer of a policy.
trait Answer {
    fn is_decision(&self) -> bool {
        false
    }
}

impl Answer for () {}
impl Answer for bool {}
impl Answer for Option<ProcessorId> {}
impl Answer for Option<Decision> {
    fn is_decision(&self) -> bool {
        self.is_some()
    }
}

/// What a run asked of its policy.
type Calls = Rc<RefCell<Vec<Call>>>;

/// A policy whose calls are kept.
struct Tape<P> {
    policy: P,
    calls: Calls,
}

impl<P> Tape<P> {
    fn keep(&self, call: Call) {
        let mut calls = self.calls.borrow_mut();
        if calls.len() < MOST_CALLS {
            calls.push(call);
        }
    }
}

macro_rules! tape {
    ($($variant:ident $call:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        #[derive(Clone, Copy)]
        enum Call {
            $($variant($($kind),*),)*
        }

        impl Call {
            /// Makes the call; whether the answer is a decision.
            fn play(self, policy: &mut impl Policy) -> bool {
                match self {
                    $(Call::$variant($($argument),*) => black_box(policy.$call($($argument),*)).is_decision(),)*
                }
            }
        }

        impl<P: Policy> Policy for Tape<P> {
            fn name(&self) -> &'static str {
                self.policy.name()
            }

            fn tick_ns(&self) -> Option<Nanoseconds> {
                self.policy.tick_ns()
            }

            $(fn $call(&mut self, $($argument: $kind),*) -> $answer {
                self.keep(Call::$variant($($argument),*));
                self.policy.$call($($argument),*)
            })*
        }
    };
}

each_policy_call!(tape);

impl Call {
    /// Whether it makes a client or a domain known, which happens before any decision.
    fn is_preparation(self) -> bool {
        matches!(self, Call::AddDomain(..) | Call::Add(..))
    }
}

/// What a decision costs.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct DecisionCost {
    /// The time of all calls together, for each decision.
    pub ns: f64,
    /// How many calls there were for each decision.
    pub calls: f64,
    /// How many decisions were timed.
    pub decisions: u64,
}

/// Runs a scenario under one policy and measures its decisions. `None`: it made no decision.
///
/// # Errors
///
/// [`Stalled`] if a program does not let time go on.
pub fn measure(scenario: &Scenario, policy: &Entry, seed: u64) -> Result<Option<DecisionCost>, Stalled> {
    let rounds = measure_in_turns(scenario, [policy], seed, ROUNDS)?;
    Ok(rounds.into_iter().map(|[cost]| cost).min_by(|one, other| one.ns.total_cmp(&other.ns)))
}

/// The same for several policies. Each gets the calls of its own run, and they are timed in turns for
/// `rounds` rounds: a disturbance that lasts longer than a round affects all of them. The result is empty if
/// one of the policies made no decision.
///
/// # Errors
///
/// As [`measure`].
pub fn measure_in_turns<const N: usize>(
    scenario: &Scenario,
    policies: [&Entry; N],
    seed: u64,
    rounds: usize,
) -> Result<Vec<[DecisionCost; N]>, Stalled> {
    let mut tapes = Vec::new();
    for policy in policies {
        let calls = Calls::default();
        let tape = Tape { policy: scenario.make(policy, seed), calls: Rc::clone(&calls) };
        run_under(scenario, tape, seed, ())?;
        tapes.push((policy, calls.take()));
    }
    let mut measured = Vec::new();
    for _ in 0..rounds {
        let costs = tapes.iter().map(|(policy, calls)| time(calls, &mut scenario.make(policy, seed)));
        // All policies have a cost or the round has none, so the length is always right.
        measured.extend(
            costs
                .collect::<Option<Vec<DecisionCost>>>()
                .and_then(|costs| <[DecisionCost; N]>::try_from(costs).ok()),
        );
    }
    Ok(measured)
}

/// Gives the calls to a policy that has seen nothing yet.
fn time(calls: &[Call], policy: &mut impl Policy) -> Option<DecisionCost> {
    // The preparation is not timed: it belongs to no decision.
    let prepared = calls.iter().take_while(|call| call.is_preparation()).count();
    let (before, run) = calls.split_at(prepared);
    for call in before {
        call.play(policy);
    }
    let begun = Instant::now();
    let decisions = run.iter().filter(|call| call.play(policy)).count();
    let passed_ns = begun.elapsed().as_nanos() as f64;
    let decided = decisions as f64;
    (decisions > 0).then(|| DecisionCost {
        ns: passed_ns / decided,
        calls: run.len() as f64 / decided,
        decisions: decisions as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_a_run_lead_to_the_same_number_of_decisions_again() {
        for name in ["shares-3-2-1", "tavs-mixed"] {
            let settings = ["warm_up_ms=0", "duration_ms=1000"].map(|text| text.parse().expect("key=value"));
            let scenario = Scenario::load(name, &settings).expect("it is right");
            for entry in mete_policy::CATALOG {
                let cost = measure(&scenario, entry, 1).expect("time goes on").expect("it decides");
                let run = crate::report::run(&scenario, entry.name, 1, ()).expect("it is in the catalog");
                assert_eq!(cost.decisions, run.expect("time goes on").0.decisions, "{}", entry.name);
                assert!(cost.calls >= 1.0 && cost.ns > 0.0);
            }
        }
    }
}
