//! A member of a crew that only reads the clock, and keeps the gaps during which it did not run.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::crew::{MemberWords, now_ns};

/// Between two readings of the clock that are at least this far apart, the member did not run. Two readings
/// in a row take about 20 ns. Delays by a hypervisor or by memory are below a microsecond as a rule.
const LEAST_NS: u64 = 1_000;

/// Words of a member that keeps `gaps` gaps: the number of gaps, then two words for each gap. Later gaps are
/// only counted.
pub const fn words(gaps: usize) -> usize {
    1 + 2 * gaps
}

/// The time between the last reading before the member lost the processor and the first reading afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last reading before.
    pub from_ns: u64,
    /// The first reading afterwards.
    pub to_ns: u64,
}

impl Gap {
    /// How long the member did not run.
    pub fn ns(self) -> u64 {
        self.to_ns - self.from_ns
    }
}

/// Reads the clock until the crew is stopped.
pub fn watch(member: &MemberWords<'_>) {
    let words = member.words();
    let most = words.len() / 2;
    let mut last = now_ns();
    let mut gaps = 0usize;
    while !member.is_over() {
        let now = now_ns();
        if now.wrapping_sub(last) >= LEAST_NS {
            // Without room the gap is only counted.
            if gaps < most {
                words[1 + 2 * gaps].store(last, Ordering::Relaxed);
                words[2 + 2 * gaps].store(now, Ordering::Relaxed);
            }
            gaps = gaps.wrapping_add(1);
            // Last, so that a reader of the count finds the gap's two words written.
            words[0].store(gaps as u64, Ordering::Release);
        }
        last = now;
    }
}

/// The gaps that a member has kept, in order of time.
pub fn gaps(words: &[AtomicU64]) -> Vec<Gap> {
    // More gaps may have been counted than there was room for.
    let count = (words[0].load(Ordering::Acquire) as usize).min(words.len() / 2);
    let pairs = words[1..=2 * count].chunks_exact(2);
    let gap = |pair: &[AtomicU64]| Gap {
        from_ns: pair[0].load(Ordering::Relaxed),
        to_ns: pair[1].load(Ordering::Relaxed),
    };
    pairs.map(gap).filter(|gap| gap.to_ns > gap.from_ns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_gaps_are_read_back_in_order() {
        let words: Vec<AtomicU64> = [2, 100, 2_000, 5_000, 9_000, 0, 0].map(AtomicU64::new).into();
        let gaps = gaps(&words);
        let [first, second] = [Gap { from_ns: 100, to_ns: 2_000 }, Gap { from_ns: 5_000, to_ns: 9_000 }];
        assert_eq!(gaps, [first, second]);
        assert_eq!((first.ns(), second.ns()), (1_900, 4_000));
    }
}
