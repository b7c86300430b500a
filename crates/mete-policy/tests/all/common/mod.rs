//! Random histories for any policy, see [`world`], and the plain case, see [`line`].

pub mod feasible;
pub mod line;
pub mod plain;
pub mod world;

pub use line::{Line, join, start};
use proptest::prelude::*;
pub use world::{CLIENTS, DOMAINS, PROCESSORS, QUANTUM_NS, State, Step, World, setup};

/// Histories of fewer than `length` steps, some of which make no sense.
pub fn steps(length: usize) -> impl Strategy<Value = Vec<Step>> {
    let client = || 0..CLIENTS + 2;
    let processor = || 0..PROCESSORS + 1;
    let domain = || 0..DOMAINS + 1;
    let share = || prop_oneof![1u32..=10, 1u32..=1000, Just(1 << 20)];
    let step = prop_oneof![
        2 => (client(), domain(), share()).prop_map(|(c, d, s)| Step::Add(c, d, s)),
        1 => client().prop_map(Step::Remove),
        1 => (client(), share()).prop_map(|(c, s)| Step::Share(c, s)),
        1 => (domain(), share()).prop_map(|(d, s)| Step::DomainShare(d, s)),
        1 => (domain(), domain(), share()).prop_map(|(d, p, s)| Step::AddDomain(d, p, s)),
        1 => domain().prop_map(Step::RemoveDomain),
        4 => client().prop_map(Step::Wake),
        2 => client().prop_map(Step::WakeAndObey),
        8 => processor().prop_map(Step::Pick),
        8 => (client(), any::<u8>(), any::<u8>()).prop_map(|(c, u, s)| Step::Ran(c, u, s)),
        1 => (client(), time(), any::<u8>()).prop_map(|(c, t, s)| Step::RanFor(c, t, s)),
        2 => processor().prop_map(Step::GiveBack),
        2 => processor().prop_map(Step::Tick),
        3 => (any::<u8>(), client(), any::<u16>()).prop_map(|(k, c, n)| Step::Observe(k, c, n)),
        3 => any::<u8>().prop_map(Step::Pass),
        1 => time().prop_map(Step::Late),
    ];
    prop::collection::vec(step, 1..length)
}

/// Histories in which clocks and lengths of time are absurd, too.
pub fn wild_steps(length: usize) -> impl Strategy<Value = Vec<Step>> {
    let mad = prop_oneof![Just(0), Just(u64::MAX), Just(u64::MAX / 2), any::<u64>(), time()];
    let wild = prop_oneof![
        1 => mad.clone().prop_map(Step::Clock),
        1 => mad.clone().prop_map(Step::Late),
        2 => (0..CLIENTS + 2, mad, any::<u8>()).prop_map(|(c, t, s)| Step::RanFor(c, t, s)),
    ];
    (steps(length), prop::collection::vec((any::<prop::sample::Index>(), wild), 0..length / 8)).prop_map(
        |(mut history, wild)| {
            for (place, step) in wild {
                let place = place.index(history.len());
                history[place] = step;
            }
            history
        },
    )
}

/// A time of some quanta at most.
fn time() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![Just(1), 0..QUANTUM_NS, 0..20 * QUANTUM_NS]
}
