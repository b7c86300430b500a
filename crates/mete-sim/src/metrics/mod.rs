//! What is computed from a run's records: small types with their units, none of which knows the machine.

mod boosts;
mod estimate;
mod fairness;
mod fluid;
mod latencies;

pub use boosts::Boosts;
pub use estimate::Estimate;
pub use fairness::jain;
pub use fluid::Fluid;
pub use latencies::{LONGEST_NS, Latencies};
