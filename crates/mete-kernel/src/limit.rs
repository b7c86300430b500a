//! What a control group may have at most.

use std::num::NonZeroU32;

/// The most processor time that a control group may have, in hundredths of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limit(NonZeroU32);

impl Limit {
    /// As many processors as no machine has.
    const MOST: u32 = 1_000_000;
    const HUNDREDTHS: f64 = 100.0;

    /// The nearest limit to a number of processors; `None` if there is none, as for what is no number.
    #[must_use]
    pub fn of_processors(processors: f64) -> Option<Limit> {
        let hundredths = (processors * Limit::HUNDREDTHS).round();
        // The cast turns a number that is out of range, or none, into the nearest one; that differs from what
        // was wanted.
        let known = NonZeroU32::new(hundredths as u32).filter(|number| number.get() <= Limit::MOST);
        known.filter(|number| f64::from(number.get()) == hundredths).map(Limit)
    }

    /// The number of processors that people write for it.
    #[must_use]
    pub fn processors(self) -> f64 {
        f64::from(self.0.get()) / Limit::HUNDREDTHS
    }

    /// What it is of a period, in the same unit.
    #[must_use]
    pub fn of_period(self, period: u64) -> u64 {
        period.saturating_mul(self.0.get().into()) / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vtrr_7_a_number_of_processors_is_a_limit_if_it_is_not_nothing() {
        for (processors, of_period) in [(1.0, 100_000), (0.01, 1000), (2.5, 250_000), (1000.0, 100_000_000)] {
            let limit = Limit::of_processors(processors).unwrap();
            assert_eq!((limit.processors(), limit.of_period(100_000)), (processors, of_period));
        }
        for none in [0.0, 0.004, -1.0, 10_001.0, 1e300, f64::NAN, f64::INFINITY] {
            assert_eq!(Limit::of_processors(none), None, "{none}");
        }
    }
}
