//! How long requests took: counts in buckets. Each power of two has 16 buckets, so the middle of a bucket
//! differs from each time in it by 1/32 at most, except in the first and the last bucket. Written by hand,
//! because the counts lie in memory that the demo and its parts share (`board.rs`): they need a fixed size
//! and no allocation.

/// Buckets in each power of two.
const IN_OCTAVE: usize = 16;
/// Shorter times, in nanoseconds, are in the first bucket: no request of the demo takes less.
const SHORTEST: u64 = 256;
/// Longer times, in nanoseconds, are in the last bucket. This is about 34 seconds.
const LONGEST: u64 = 1 << 35;
/// All buckets.
pub const BUCKETS: usize = (LONGEST.ilog2() - SHORTEST.ilog2()) as usize * IN_OCTAVE;

/// The bucket of a length in nanoseconds.
pub fn bucket(ns: u64) -> usize {
    let ns = ns.clamp(SHORTEST, LONGEST - 1);
    let octave = ns.ilog2();
    // The leading bit and the four bits after it: these choose among the 16 buckets of an octave.
    let in_octave = (ns >> (octave - IN_OCTAVE.ilog2())) as usize - IN_OCTAVE;
    (octave - SHORTEST.ilog2()) as usize * IN_OCTAVE + in_octave
}

/// How many requests there are in each bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latencies(pub [u64; BUCKETS]);

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies([0; BUCKETS])
    }
}

impl Latencies {
    /// Combines the counts of each bucket with those of `other`.
    pub fn with(mut self, other: &Latencies, what: fn(u64, u64) -> u64) -> Latencies {
        self.0.iter_mut().zip(other.0).for_each(|(count, other)| *count = what(*count, other));
        self
    }

    /// The time in nanoseconds that this part (0 to 1) of all requests did not exceed; `None` if there were
    /// none.
    pub fn quantile_ns(&self, part: f64) -> Option<f64> {
        let all: u64 = self.0.iter().sum();
        let wanted = ((all as f64 * part).ceil() as u64).max(1);
        // At least one request is wanted (see above), so a part of 0 is the shortest time.
        let mut before = 0;
        let bucket = self.0.iter().position(|count| {
            before += count;
            before >= wanted
        })?;
        let width = (SHORTEST << (bucket / IN_OCTAVE)) as f64 / IN_OCTAVE as f64;
        // The middle of the bucket: its lower end is this multiple of its width.
        Some(width * ((bucket % IN_OCTAVE + IN_OCTAVE) as f64 + 0.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_latencies_are_off_by_a_thirty_second_at_most() {
        // From a third of a microsecond to ten seconds, each a little longer than the one before.
        let lengths: Vec<u64> = (0..2000).map(|nth| (300.0 * 1.0087_f64.powi(nth)) as u64).collect();
        let mut latencies = Latencies::default();
        lengths.iter().for_each(|&ns| latencies.0[bucket(ns)] += 1);
        for part in [0.001, 0.25, 0.5, 0.9, 0.99, 1.0] {
            let exact = lengths[((lengths.len() as f64 * part).ceil() as usize).max(1) - 1] as f64;
            let found = latencies.quantile_ns(part).unwrap_or(f64::NAN);
            assert!((found - exact).abs() <= exact / 32.0, "{part}: {found} for {exact}");
        }
        assert_eq!(Latencies::default().quantile_ns(0.5), None);
    }

    #[test]
    fn any_length_has_a_bucket() {
        assert_eq!([0, SHORTEST, LONGEST - 1, u64::MAX].map(bucket), [0, 0, BUCKETS - 1, BUCKETS - 1]);
    }
}
