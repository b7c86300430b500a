//! The time sources of user-level components, and how raw ticks become nanoseconds.
//!
//! Rows carry raw ticks of the processor's counter, because reading it is nine tenths of the cost of a row.
//! The reader converts them, with two readings of the counter and of the monotonic clock that lie some time
//! apart ([`Calibration`]).

use crate::handler::Clock;

/// The clocks of this process: the processor's counter and the kernel's coarse tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct UserClock;

impl Clock for UserClock {
    #[inline(always)]
    fn hardware(&self) -> u64 {
        ticks()
    }

    #[inline]
    fn tick(&self) -> u64 {
        nanoseconds(rustix::time::ClockId::MonotonicCoarse)
    }
}

/// The processor's time-stamp counter.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: RDTSC has no precondition; Linux allows it in user space.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The monotonic clock, where there is no time-stamp counter.
#[cfg(any(not(target_arch = "x86_64"), miri))]
#[inline(always)]
pub fn ticks() -> u64 {
    monotonic_ns()
}

/// CLOCK_MONOTONIC in nanoseconds: all other times are converted to it.
pub fn monotonic_ns() -> u64 {
    nanoseconds(rustix::time::ClockId::Monotonic)
}

fn nanoseconds(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// One reading of both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The processor's counter.
    pub ticks: u64,
    /// CLOCK_MONOTONIC in nanoseconds.
    pub ns: u64,
}

impl Anchor {
    /// Reads both clocks. It takes the fastest of several tries, so that an interruption does not distort it.
    pub fn now() -> Anchor {
        let readings = core::array::from_fn::<_, 8, _>(|_| {
            let before = ticks();
            let ns = monotonic_ns();
            (ticks().wrapping_sub(before), Anchor { ticks: before, ns })
        });
        let (gap, anchor) =
            readings.into_iter().fold(readings[0], |best, next| if next.0 < best.0 { next } else { best });
        // The monotonic clock was read about half way between the two readings of the counter.
        Anchor { ticks: anchor.ticks.wrapping_add(gap / 2), ns: anchor.ns }
    }
}

/// Converts ticks to nanoseconds by a line through two anchors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    first: Anchor,
    last: Anchor,
}

impl Calibration {
    /// A line through two anchors: the farther they are apart, the better it is. `None` if `last` is not
    /// later than `first` on both clocks.
    pub fn between(first: Anchor, last: Anchor) -> Option<Calibration> {
        (last.ticks > first.ticks && last.ns > first.ns).then_some(Calibration { first, last })
    }

    /// Calibrates over a wait of `wait`. A precision of one part in ten thousand takes at least 10 ms.
    pub fn after(wait: core::time::Duration) -> Calibration {
        let first = Anchor::now();
        // A clock that did not move gives no line: wait once more.
        loop {
            std::thread::sleep(wait.max(core::time::Duration::from_millis(1)));
            if let Some(calibration) = Calibration::between(first, Anchor::now()) {
                return calibration;
            }
        }
    }

    /// The number of ticks in a second.
    pub fn ticks_per_second(&self) -> f64 {
        (self.last.ticks - self.first.ticks) as f64 * 1e9 / (self.last.ns - self.first.ns) as f64
    }

    /// The moment at which the counter read `ticks`, in CLOCK_MONOTONIC nanoseconds.
    pub fn to_ns(&self, ticks: u64) -> u64 {
        // In 128 bits, because the product of distance and slope soon exceeds 64.
        let distance = i128::from(ticks) - i128::from(self.first.ticks);
        let slope =
            (i128::from(self.last.ns - self.first.ns), i128::from(self.last.ticks - self.first.ticks));
        (i128::from(self.first.ns) + distance * slope.0 / slope.1).clamp(0, i128::from(u64::MAX)) as u64
    }

    /// The time that `ticks` ticks take, in nanoseconds.
    pub fn duration_ns(&self, ticks: u64) -> f64 {
        ticks as f64 * 1e9 / self.ticks_per_second()
    }
}
