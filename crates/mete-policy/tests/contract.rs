//! What the interface promises, for every policy in the catalog and any sequence of calls.

mod common;

use common::{CLIENTS, PROCESSORS, Step, World, setup, steps};
use mete_policy::{CATALOG, by_name};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The world's own books say who is ready; it asserts at each step that the policy agrees.
    #[test]
    fn new_1_every_policy_picks_who_is_ready_and_only_those(history in steps(400)) {
        for entry in CATALOG {
            let mut world = World::new((entry.make)(&setup()));
            for step in &history {
                world.take(step);
            }
        }
    }

    #[test]
    fn new_1_the_same_calls_give_the_same_answers(history in steps(200)) {
        for entry in CATALOG {
            let answers = |()| {
                let mut world = World::new((entry.make)(&setup()));
                history.iter().for_each(|step| world.take(step));
                world.answers
            };
            prop_assert_eq!(answers(()), answers(()), "{}", entry.name);
        }
    }

    /// Nobody stays ready for ever while the others are served: all wake, nobody blocks.
    #[test]
    fn new_1_everybody_who_is_ready_runs_in_the_end(shares in prop::collection::vec(1u32..=50, CLIENTS as usize)) {
        for entry in CATALOG {
            let mut world = World::new((entry.make)(&setup()));
            for (client, &share) in (0..).zip(&shares) {
                world.take(&Step::Add(client, 0, share));
                world.take(&Step::Wake(client));
            }
            let mut served = vec![false; CLIENTS as usize];
            for _ in 0..40_000 {
                let decision = world.policy.pick(0, world.now);
                let Some(decision) = decision else { panic!("{}: nobody is picked", entry.name) };
                served[decision.client as usize] = true;
                world.now += decision.slice_ns;
                let stop = mete_policy::Stop::Expired;
                world.policy.ran(decision.client, decision.slice_ns, stop, world.now);
                for processor in 0..PROCESSORS {
                    let _ = world.policy.tick(processor, world.now);
                }
            }
            prop_assert!(served.iter().all(|&served| served), "{}: {served:?} of {shares:?}", entry.name);
        }
    }
}

#[test]
fn new_1_every_policy_answers_to_its_name() {
    for entry in CATALOG {
        assert_eq!((entry.make)(&setup()).name(), entry.name);
        assert!(by_name(entry.name).is_some() && !entry.about.is_empty());
    }
    assert!(by_name("no such policy").is_none());
}
