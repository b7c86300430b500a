//! Time in ticks. It has a type of its own, so that it is not taken for nanoseconds:
//!
//! ```compile_fail,E0308
//! use mete_log::{Ticks, clock::monotonic_ns};
//! let read: Ticks = monotonic_ns();
//! ```

use core::fmt;

/// A reading of a clock that counts ticks. What a tick is depends on the clock: for
/// [`clock::ticks`](crate::clock::ticks) it is one of the processor's counter, and in a trace it is one of
/// the trace's clock. That clock may be the monotonic one. Then a tick is one nanosecond.
///
/// Readings of different clocks must not be mixed, and the type does not tell them apart.
///
/// In log rows and records, a time stamp is a plain 64-bit word. It gets its type where it is read by code
/// that knows its clock. So [`Row::stamp`](crate::Row) has none: its unit depends on the file's
/// [`Stamp`](crate::Stamp), and for some files it is no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[repr(transparent)]
pub struct Ticks(u64);

impl Ticks {
    /// The latest reading that there can be.
    pub const MAX: Ticks = Ticks(u64::MAX);

    /// The reading from its 64 bits. Every value is one.
    #[inline(always)]
    pub const fn new(ticks: u64) -> Ticks {
        Ticks(ticks)
    }

    /// The bare number, as it is in rows and records.
    #[inline(always)]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of ticks that have passed since an earlier reading; `None` if that one is later.
    #[inline]
    pub const fn checked_since(self, earlier: Ticks) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }

    /// The reading a number of ticks later, or the latest one.
    #[inline]
    pub const fn saturating_add(self, ticks: u64) -> Ticks {
        Ticks(self.0.saturating_add(ticks))
    }

    /// The reading a number of ticks earlier, or zero.
    #[inline]
    pub const fn saturating_sub(self, ticks: u64) -> Ticks {
        Ticks(self.0.saturating_sub(ticks))
    }
}

impl From<Ticks> for u64 {
    #[inline(always)]
    fn from(ticks: Ticks) -> u64 {
        ticks.0
    }
}

impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
