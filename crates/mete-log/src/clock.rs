//! The time sources of user-level components, and how raw ticks become nanoseconds.
//!
//! Rows carry raw ticks of the processor's counter, because reading it is nine tenths of the cost of a row.
//! The reader converts them, with two readings of the counter and of the monotonic clock that lie some time
//! apart ([`Calibration`]).

use crate::Ticks;
use crate::handler::Clock;

/// The clocks of this process: the processor's counter and the kernel's coarse tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct UserClock;

impl Clock for UserClock {
    #[inline(always)]
    fn hardware(&self) -> u64 {
        ticks().get()
    }

    #[inline]
    fn tick(&self) -> u64 {
        nanoseconds(rustix::time::ClockId::MonotonicCoarse)
    }
}

/// The processor's time-stamp counter.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub fn ticks() -> Ticks {
    // SAFETY: RDTSC has no precondition; Linux allows it in user space.
    Ticks::new(unsafe { core::arch::x86_64::_rdtsc() })
}

/// The monotonic clock, where there is no time-stamp counter. A tick is one nanosecond.
#[cfg(any(not(target_arch = "x86_64"), miri))]
#[inline(always)]
pub fn ticks() -> Ticks {
    Ticks::new(monotonic_ns())
}

/// CLOCK_MONOTONIC in nanoseconds: all other times are converted to it.
pub fn monotonic_ns() -> u64 {
    nanoseconds(rustix::time::ClockId::Monotonic)
}

/// What a clock of the system shows, in nanoseconds.
pub fn nanoseconds(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// One reading of both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The processor's counter.
    pub ticks: Ticks,
    /// CLOCK_MONOTONIC in nanoseconds.
    pub ns: u64,
}

impl Anchor {
    /// Reads both clocks. It takes the fastest of several tries, so that an interruption does not distort it.
    pub fn now() -> Anchor {
        let readings = core::array::from_fn::<_, 8, _>(|_| {
            let before = ticks();
            let ns = monotonic_ns();
            // A thread that has moved to a processor whose counter is behind has taken the slowest try.
            (ticks().checked_since(before).unwrap_or(u64::MAX), Anchor { ticks: before, ns })
        });
        let (gap, anchor) =
            readings.into_iter().fold(readings[0], |best, next| if next.0 < best.0 { next } else { best });
        // The monotonic clock was read about half way between the two readings of the counter.
        Anchor { ticks: anchor.ticks.saturating_add(gap / 2), ns: anchor.ns }
    }
}

/// A straight line through two anchors, which turns ticks into nanoseconds. The slope, nanoseconds for each
/// tick, is kept in units of 2^-64, so that no conversion costs a division. The error of the rounded slope
/// stays below a nanosecond for centuries.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    first: Anchor,
    slope: i128,
}

impl Calibration {
    /// A line through two anchors: the farther they are apart, the better it is. `None` if `last` is not
    /// later than `first` on both clocks, or so much later that the slope cannot be computed.
    pub fn between(first: Anchor, last: Anchor) -> Option<Calibration> {
        let passed = last.ticks.checked_since(first.ticks).filter(|ticks| *ticks > 0)?;
        let passed_ns = last.ns.checked_sub(first.ns).filter(|ns| *ns > 0)?;
        // `None` if the product has more than 127 bits: anchors may come from a file.
        let rise = i128::from(passed_ns).checked_mul(1 << 64)?;
        Some(Calibration { first, slope: rise / i128::from(passed) })
    }

    /// The moment at which the counter read `ticks`, in CLOCK_MONOTONIC nanoseconds.
    #[inline]
    pub fn to_ns(&self, ticks: Ticks) -> u64 {
        let distance = i128::from(ticks.get()) - i128::from(self.first.ticks.get());
        // Adding one half before the shift rounds to the nearest. The product and the sum saturate only where
        // the result is out of range already.
        let rise = distance.saturating_mul(self.slope).saturating_add(1 << 63) >> 64;
        (i128::from(self.first.ns) + rise).clamp(0, i128::from(u64::MAX)) as u64
    }

    /// The length of a tick in nanoseconds.
    pub fn ns_per_tick(&self) -> f64 {
        self.slope as f64 / 2f64.powi(64)
    }
}
