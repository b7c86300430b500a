//! What a control group has beside the others with the same parent.

use std::num::NonZeroU32;

/// A weight in the unit of `cpu.weight`: control groups that compete have processor time in the proportion of
/// their weights.
///
/// People write shares: a share of 1 is a weight of 100, which every control group has by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(NonZeroU32);

impl Weight {
    /// What a control group has of which nothing is said.
    pub const ORDINARY: Weight = Weight::new(100).expect("it is in between");
    /// The kernel's greatest one.
    pub const MOST: u32 = 10_000;

    /// A weight from 1 to [`Weight::MOST`]; `None` for any other number.
    #[must_use]
    pub const fn new(weight: u32) -> Option<Weight> {
        match NonZeroU32::new(weight) {
            Some(number) if weight <= Weight::MOST => Some(Weight(number)),
            _ => None,
        }
    }

    /// The nearest weight to a share; `None` if there is none, as for what is no number.
    #[must_use]
    pub fn of_share(share: f64) -> Option<Weight> {
        let weight = (f64::from(Weight::ORDINARY.get()) * share).round();
        // The cast turns a number that is out of range, or none, into the nearest one; that differs from what
        // was wanted.
        Weight::new(weight as u32).filter(|known| f64::from(known.get()) == weight)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// The share that people write for it.
    #[must_use]
    pub fn share(self) -> f64 {
        f64::from(self.get()) / f64::from(Weight::ORDINARY.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vtrr_7_a_share_is_a_weight_if_the_kernel_has_one() {
        for (share, weight) in
            [(1.0, 100), (0.01, 1), (0.005, 1), (2.5, 250), (100.0, 10_000), (100.004, 10_000)]
        {
            assert_eq!(Weight::of_share(share).map(Weight::get), Some(weight), "{share}");
        }
        for share in [0.0, 0.004, -1.0, 100.01, 1e300, f64::NAN, f64::INFINITY] {
            assert_eq!(Weight::of_share(share), None, "{share}");
        }
        assert_eq!(Weight::new(250).unwrap().share(), 2.5);
        assert_eq!([Weight::new(0), Weight::new(10_001)], [None; 2]);
    }
}
