//! The trace's clock: readings of it beside the system's clocks, and the line that turns ticks into
//! nanoseconds.

use mete_log::Ticks;
use mete_log::clock::{Anchor, Calibration};
use serde::{Deserialize, Serialize};

/// Which clock stamped the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The processors' own counters (on x86-64 the time-stamp counter).
    Counter,
    /// CLOCK_MONOTONIC: a tick is one nanosecond.
    Monotonic,
}

impl ClockSource {
    /// Reads the clock.
    #[inline]
    pub fn now(self) -> Ticks {
        match self {
            ClockSource::Counter => mete_log::clock::ticks(),
            ClockSource::Monotonic => Ticks::new(mete_log::clock::monotonic_ns()),
        }
    }
}

/// All clocks at one moment, read on one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAnchor {
    /// The processor on which they were read.
    pub processor: u32,
    /// The trace's clock.
    pub ticks: Ticks,
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME.
    pub realtime_ns: u64,
}

impl ClockAnchor {
    /// Reads the clocks. `processor` is the processor on which the caller runs.
    pub fn now(source: ClockSource, processor: u32) -> ClockAnchor {
        let anchor = Anchor::now();
        let monotonic = mete_log::clock::monotonic_ns();
        let real_ns = mete_log::clock::nanoseconds(rustix::time::ClockId::Realtime);
        let ticks = match source {
            ClockSource::Counter => anchor.ticks,
            ClockSource::Monotonic => Ticks::new(anchor.ns),
        };
        // CLOCK_REALTIME is read a little later than the anchor; the time since then is taken off again.
        let realtime_ns = real_ns - monotonic.saturating_sub(anchor.ns);
        ClockAnchor { processor, ticks, monotonic_ns: anchor.ns, realtime_ns }
    }
}

/// The trace's clock and its relation to the system's clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Which clock.
    pub source: ClockSource,
    /// Readings at the beginning and the end, on every processor. A straight line through the first and the
    /// last reading turns ticks into nanoseconds. The distance of the other readings from that line tells how
    /// well the processors' clocks agree.
    pub anchors: Vec<ClockAnchor>,
}

impl Clock {
    /// The line through the first and the last reading; `None` if there are fewer than two.
    fn line(&self) -> Option<Calibration> {
        let first = self.anchors.iter().min_by_key(|anchor| anchor.ticks)?;
        let last = self.anchors.iter().max_by_key(|anchor| anchor.ticks)?;
        let [first, last] = [first, last].map(|of| Anchor { ticks: of.ticks, ns: of.monotonic_ns });
        Calibration::between(first, last)
    }

    /// Turns ticks into CLOCK_MONOTONIC nanoseconds; `None` if the trace has fewer than two readings.
    pub fn converter(&self) -> Option<Converter> {
        match self.source {
            ClockSource::Monotonic => Some(Converter(None)),
            ClockSource::Counter => self.line().map(|line| Converter(Some(line))),
        }
    }

    /// The largest distance of a reading from the line, in nanoseconds: the error to expect when times of
    /// different processors are compared. `None` if there are fewer than two readings.
    pub fn alignment_error_ns(&self) -> Option<u64> {
        let convert = self.converter()?;
        self.anchors.iter().map(|anchor| convert.ns(anchor.ticks).abs_diff(anchor.monotonic_ns)).max()
    }

    /// CLOCK_REALTIME minus CLOCK_MONOTONIC when recording began, in nanoseconds.
    pub fn realtime_offset_ns(&self) -> Option<i64> {
        let first = self.anchors.iter().min_by_key(|anchor| anchor.monotonic_ns)?;
        i64::try_from(i128::from(first.realtime_ns) - i128::from(first.monotonic_ns)).ok()
    }
}

/// Turns a trace's ticks into nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Converter(Option<Calibration>);

impl Converter {
    /// The CLOCK_MONOTONIC time in nanoseconds when the trace's clock showed `ticks`.
    #[inline]
    pub fn ns(&self, ticks: Ticks) -> u64 {
        self.0.map_or(ticks.get(), |line| line.to_ns(ticks))
    }

    /// The first tick for which [`Converter::ns`] gives `ns` or more.
    pub fn ticks(&self, ns: u64) -> Ticks {
        // A binary search: `ns` never falls when ticks rise, but several ticks may have the same nanosecond.
        let (mut low, mut high) = (0, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.ns(Ticks::new(middle)) < ns { low = middle + 1 } else { high = middle }
        }
        Ticks::new(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_7_ticks_and_nanoseconds_are_converted_both_ways() {
        let anchor = |ticks, ns| {
            let ticks = Ticks::new(ticks);
            ClockAnchor { processor: 0, ticks, monotonic_ns: ns, realtime_ns: ns + 50 }
        };
        let anchors =
            vec![anchor(3_000_000, 1_000_000), anchor(6_000_000, 2_000_000), anchor(4_500_300, 1_500_000)];
        let clock = Clock { source: ClockSource::Counter, anchors };
        let convert = clock.converter().unwrap();
        let ticks = convert.ticks(1_500_000);
        assert_eq!(
            (convert.ns(Ticks::new(4_500_000)), convert.ns(ticks), convert.ns(ticks.saturating_sub(1))),
            (1_500_000, 1_500_000, 1_499_999)
        );
        assert_eq!(clock.alignment_error_ns(), Some(100));
        assert_eq!(clock.realtime_offset_ns(), Some(50));
        let once = Clock { anchors: clock.anchors[..1].to_vec(), ..clock };
        assert!(once.converter().is_none());
    }
}
