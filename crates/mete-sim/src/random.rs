//! Random numbers: a stream for each entity, and distributions that are the same on every machine.
//!
//! The run's seed and the entity's name determine where a stream begins, so another entity in the scenario
//! does not shift any other stream. Logarithms and powers come from `libm`, which is written in Rust: the
//! system's own library may differ in the last bit from machine to machine.

use mete_policy::Nanoseconds;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// An entity's own random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of the entity with this name, in the run with this seed.
    pub fn new(seed: u64, name: &str) -> Stream {
        Stream(Pcg64Mcg::seed_from_u64(seed ^ hash(name)))
    }

    /// A number from 0 to `below` minus one; 0 if `below` is 0.
    pub fn below(&mut self, below: u64) -> u64 {
        // The upper half of the product: its bias is below 2⁻⁶⁴ × `below`.
        ((u128::from(self.0.next_u64()) * u128::from(below)) >> 64) as u64
    }

    /// A number above 0 and at most 1.
    fn unit(&mut self) -> f64 {
        const STEPS: u64 = 1 << 53;
        (self.below(STEPS) + 1) as f64 / STEPS as f64
    }
}

/// FNV-1a: spreads names over the seeds.
fn hash(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// How a length of time (or another number) varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Fixed(u64),
    /// Every number from the first to the second, including both, with the same probability.
    Uniform(u64, u64),
    /// Exponential with this mean.
    Exponential {
        /// The mean.
        mean: u64,
    },
    /// Normal, cut off at 0.
    Normal {
        /// The mean, before it is cut off.
        mean: u64,
        /// The standard deviation.
        deviation: u64,
    },
    /// Pareto: at least `least`; the smaller `shape` is, the heavier the tail.
    Pareto {
        /// The smallest value.
        least: u64,
        /// The exponent, more than 0.
        shape: f64,
    },
}

/// Longer than any run. A sample of a heavy tail is cut off here, so that sums of samples fit.
pub const LONGEST_NS: Nanoseconds = Nanoseconds::new(1 << 60);

impl Distribution {
    /// Whether every sample is 0.
    pub fn is_zero(&self) -> bool {
        match *self {
            Distribution::Fixed(value) => value == 0,
            Distribution::Uniform(_, high) => high == 0,
            Distribution::Exponential { mean } => mean == 0,
            Distribution::Normal { mean, deviation } => mean == 0 && deviation == 0,
            Distribution::Pareto { least, .. } => least == 0,
        }
    }

    /// A sample of lengths of time.
    pub fn sample_ns(&self, stream: &mut Stream) -> Nanoseconds {
        Nanoseconds::new(self.sample(stream))
    }

    /// A sample, rounded to a whole number and at most [`LONGEST_NS`].
    pub fn sample(&self, stream: &mut Stream) -> u64 {
        match *self {
            Distribution::Fixed(value) => value.min(LONGEST_NS.get()),
            Distribution::Uniform(low, high) => {
                let width = high.saturating_sub(low).saturating_add(1);
                low.saturating_add(stream.below(width)).min(LONGEST_NS.get())
            }
            Distribution::Exponential { mean } => rounded(-(mean as f64) * libm::log(stream.unit())),
            Distribution::Normal { mean, deviation } => {
                // Box and Muller's transformation. `unit` is never 0, so the logarithm is finite.
                let radius = libm::sqrt(-2.0 * libm::log(stream.unit()));
                let angle = core::f64::consts::TAU * stream.unit();
                rounded(mean as f64 + deviation as f64 * radius * libm::cos(angle))
            }
            Distribution::Pareto { least, shape } => {
                rounded(least as f64 * libm::pow(stream.unit(), -1.0 / shape))
            }
        }
    }
}

/// The cast saturates: a number below 0 becomes 0, and so does a value that is not a number.
fn rounded(value: f64) -> u64 {
    (libm::round(value) as u64).min(LONGEST_NS.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(distribution: Distribution) -> u64 {
        let mut stream = Stream::new(1, "mean");
        let sum: u64 = (0..100_000).map(|_| distribution.sample(&mut stream)).sum();
        sum / 100_000
    }

    #[test]
    fn distributions_have_the_means_they_promise() {
        assert_eq!(mean(Distribution::Fixed(1000)), 1000);
        assert!((990..=1010).contains(&mean(Distribution::Uniform(0, 2000))));
        assert!((985..=1015).contains(&mean(Distribution::Exponential { mean: 1000 })));
        assert!((990..=1010).contains(&mean(Distribution::Normal { mean: 1000, deviation: 100 })));
        // Mean of a Pareto distribution: least × shape / (shape − 1).
        assert!((1475..=1525).contains(&mean(Distribution::Pareto { least: 1000, shape: 3.0 })));
    }

    #[test]
    fn samples_stay_in_their_range_with_any_parameters() {
        let mut stream = Stream::new(2, "range");
        for _ in 0..10_000 {
            assert!((3..=5).contains(&Distribution::Uniform(3, 5).sample(&mut stream)));
            assert!(Distribution::Pareto { least: 7, shape: 0.01 }.sample(&mut stream) >= 7);
            assert!(Distribution::Exponential { mean: u64::MAX }.sample(&mut stream) <= LONGEST_NS.get());
            assert!(Distribution::Uniform(0, u64::MAX).sample(&mut stream) <= LONGEST_NS.get());
        }
    }

    #[test]
    fn streams_differ_by_name_and_by_seed_and_repeat() {
        let first = |seed, name| Stream::new(seed, name).below(u64::MAX);
        assert_eq!(first(1, "a"), first(1, "a"));
        assert_ne!(first(1, "a"), first(1, "b"));
        assert_ne!(first(1, "a"), first(2, "a"));
    }
}
