//! Lengths of time and points in time, in nanoseconds.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

/// A time in nanoseconds since an origin that the owner chooses, or a length of time.
///
/// The operators are those of the number: they panic on overflow where that is checked (debug builds). They
/// are for times that are bounded already. A policy, which must not panic whatever its owner says, uses the
/// `saturating_` functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Nanoseconds(u64);

impl Nanoseconds {
    /// No time, and the origin of times.
    pub const ZERO: Nanoseconds = Nanoseconds(0);
    /// The longest time, 584 years.
    pub const MAX: Nanoseconds = Nanoseconds(u64::MAX);

    /// That number of nanoseconds.
    #[inline]
    pub const fn new(number: u64) -> Nanoseconds {
        Nanoseconds(number)
    }

    /// That number of microseconds; at most [`MAX`](Self::MAX).
    #[inline]
    pub const fn from_micros(number: u64) -> Nanoseconds {
        Nanoseconds(number.saturating_mul(1_000))
    }

    /// That number of milliseconds; at most [`MAX`](Self::MAX).
    #[inline]
    pub const fn from_millis(number: u64) -> Nanoseconds {
        Nanoseconds(number.saturating_mul(1_000_000))
    }

    /// That number of seconds; at most [`MAX`](Self::MAX).
    #[inline]
    pub const fn from_secs(number: u64) -> Nanoseconds {
        Nanoseconds(number.saturating_mul(1_000_000_000))
    }

    /// The time as a number of nanoseconds.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The time in milliseconds.
    #[inline]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The time in seconds.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// How large a part of `whole` this time is; of no time at all it is that of 1 ns.
    #[inline]
    pub fn part_of(self, whole: Nanoseconds) -> f64 {
        self.0 as f64 / whole.0.max(1) as f64
    }

    /// Whether no time has passed.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, at most [`MAX`](Self::MAX).
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, other: Nanoseconds) -> Nanoseconds {
        Nanoseconds(self.0.saturating_add(other.0))
    }

    /// The time from `other` to this one; none where `other` is later.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Nanoseconds) -> Nanoseconds {
        Nanoseconds(self.0.saturating_sub(other.0))
    }

    /// That many times this time, at most [`MAX`](Self::MAX).
    #[inline]
    #[must_use]
    pub const fn saturating_mul(self, times: u64) -> Nanoseconds {
        Nanoseconds(self.0.saturating_mul(times))
    }

    /// The time between this one and `other`, whichever is later.
    #[inline]
    #[must_use]
    pub const fn abs_diff(self, other: Nanoseconds) -> Nanoseconds {
        Nanoseconds(self.0.abs_diff(other.0))
    }
}

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// For sums and products that need more than 64 bits.
impl From<Nanoseconds> for u128 {
    #[inline]
    fn from(time: Nanoseconds) -> u128 {
        time.0.into()
    }
}

/// For differences, which may be negative, and products that need more than 64 bits.
impl From<Nanoseconds> for i128 {
    #[inline]
    fn from(time: Nanoseconds) -> i128 {
        time.0.into()
    }
}

/// Defines an operator as that of the numbers.
macro_rules! operator {
    ($operator:ident, $function:ident: $left:ty, $right:ty => $result:ty, |$one:ident, $other:ident| $value:expr) => {
        impl $operator<$right> for $left {
            type Output = $result;

            #[inline]
            fn $function(self, $other: $right) -> $result {
                let $one = self;
                $value
            }
        }
    };
}

operator!(Add, add: Nanoseconds, Nanoseconds => Nanoseconds, |one, other| Nanoseconds(one.0 + other.0));
operator!(Sub, sub: Nanoseconds, Nanoseconds => Nanoseconds, |one, other| Nanoseconds(one.0 - other.0));
operator!(Mul, mul: Nanoseconds, u64 => Nanoseconds, |time, times| Nanoseconds(time.0 * times));
operator!(Mul, mul: u64, Nanoseconds => Nanoseconds, |times, time| Nanoseconds(times * time.0));
operator!(Div, div: Nanoseconds, u64 => Nanoseconds, |time, parts| Nanoseconds(time.0 / parts));
// How many times one time fits into another, and what is left then.
operator!(Div, div: Nanoseconds, Nanoseconds => u64, |one, other| one.0 / other.0);
operator!(Rem, rem: Nanoseconds, Nanoseconds => Nanoseconds, |one, other| Nanoseconds(one.0 % other.0));

impl AddAssign for Nanoseconds {
    #[inline]
    fn add_assign(&mut self, other: Nanoseconds) {
        self.0 += other.0;
    }
}

impl SubAssign for Nanoseconds {
    #[inline]
    fn sub_assign(&mut self, other: Nanoseconds) {
        self.0 -= other.0;
    }
}

impl Sum for Nanoseconds {
    fn sum<I: Iterator<Item = Nanoseconds>>(times: I) -> Nanoseconds {
        Nanoseconds(times.map(Nanoseconds::get).sum())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    #[test]
    fn new_1_times_beyond_the_longest_are_the_longest_and_before_zero_are_zero() {
        assert_eq!(Nanoseconds::from_millis(u64::MAX), Nanoseconds::MAX);
        assert_eq!(Nanoseconds::MAX.saturating_add(Nanoseconds::new(1)), Nanoseconds::MAX);
        assert_eq!(Nanoseconds::new(3).saturating_sub(Nanoseconds::new(5)), Nanoseconds::ZERO);
        assert_eq!(Nanoseconds::MAX.saturating_mul(2), Nanoseconds::MAX);
    }

    #[test]
    fn new_1_a_time_is_shown_as_its_number() {
        assert_eq!(Nanoseconds::from_micros(3).to_string(), "3000");
        assert_eq!(std::format!("{:>6}", Nanoseconds::from_millis(10) / 1000), " 10000");
    }
}
