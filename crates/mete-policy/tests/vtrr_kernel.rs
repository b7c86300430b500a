//! The policy that also runs inside the kernel, written in C, decides as its twin in Rust does (D12).

mod common;

use common::world::Answer;
use common::{Step, World, setup, steps, wild_steps};
use mete_policy::{GroupVtrr, KernelVtrr, Nanoseconds, Policy, Setup};
use proptest::prelude::*;

fn answers(policy: impl Policy + 'static, setup: Setup, history: &[Step]) -> Vec<Answer> {
    let mut world = World::with(Box::new(policy), setup);
    history.iter().for_each(|step| world.take(step));
    world.answers
}

fn decide_alike(setup: Setup, history: &[Step]) -> Result<(), TestCaseError> {
    let kernel = answers(KernelVtrr::new(&setup), setup, history);
    prop_assert_eq!(kernel, answers(GroupVtrr::new(&setup), setup, history));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn vtrr_6_the_kernels_policy_decides_as_its_twin_in_rust(history in steps(600)) {
        decide_alike(setup(), &history)?;
    }

    #[test]
    fn vtrr_6_the_kernels_policy_decides_as_its_twin_on_one_processor(history in steps(600)) {
        decide_alike(Setup { processors: 1, ..setup() }, &history)?;
    }

    #[test]
    fn vtrr_6_the_kernels_policy_decides_as_its_twin_whatever_the_times(
        history in wild_steps(400),
        quantum_ns in prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>(), Just(1_000_000)],
    ) {
        decide_alike(Setup { quantum_ns: Nanoseconds::new(quantum_ns), ..setup() }, &history)?;
    }
}
