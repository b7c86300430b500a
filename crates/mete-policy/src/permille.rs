//! Parts of a whole in thousandths.

use core::fmt;

/// Thousandths: of one processor for a share, of one task for the length of a queue. More than the whole is
/// possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Permille(u32);

impl Permille {
    /// Nothing.
    pub const ZERO: Permille = Permille(0);
    /// The whole: one processor, one task.
    pub const WHOLE: Permille = Permille(1000);
    /// The most.
    pub const MAX: Permille = Permille(u32::MAX);

    /// That number of thousandths.
    #[inline]
    pub const fn new(thousandths: u32) -> Permille {
        Permille(thousandths)
    }

    /// The thousandths that `part` is of `whole`, rounded down and at most [`MAX`](Self::MAX); none of a
    /// whole of zero.
    pub fn of(part: u64, whole: u64) -> Permille {
        // 128 bits, because 1000 times the part need not fit into 64.
        let thousandths = (u128::from(part) * 1000).checked_div(u128::from(whole)).unwrap_or(0);
        Permille(u32::try_from(thousandths).unwrap_or(u32::MAX))
    }

    /// This part of `whole`, rounded down and at most [`u64::MAX`].
    pub fn part_of(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.0) / 1000;
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// The number of thousandths.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The sum, at most [`MAX`](Self::MAX).
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, other: Permille) -> Permille {
        Permille(self.0.saturating_add(other.0))
    }

    /// What is left without `other`; nothing where `other` is more.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Permille) -> Permille {
        Permille(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Permille {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_1_a_part_in_thousandths_is_rounded_down_and_bounded() {
        assert_eq!(Permille::of(2, 3), Permille::new(666));
        assert_eq!(Permille::of(5, 1), Permille::new(5000), "more than the whole");
        assert_eq!((Permille::of(u64::MAX, 1), Permille::of(1, 0)), (Permille::MAX, Permille::ZERO));
    }

    #[test]
    fn new_1_a_part_of_a_number_is_rounded_down_and_bounded() {
        assert_eq!(Permille::new(125).part_of(80), 10);
        assert_eq!(Permille::new(1).part_of(999), 0);
        assert_eq!(Permille::MAX.part_of(u64::MAX), u64::MAX);
        assert_eq!(Permille::WHOLE.part_of(u64::MAX), u64::MAX);
    }
}
