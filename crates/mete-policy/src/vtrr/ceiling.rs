//! Shares that cannot be had: one client uses one processor at most.
//!
//! With P processors and shares of sum T, a client of share S > T / P is *infeasible*: it falls further
//! behind the longer it runs, and the others' order is distorted (Chandra, Adler, Goyal, Shenoy: Surplus
//! Fair Scheduling, OSDI 2000, §2.1). Their readjustment gives each such client the share of one whole
//! processor: the largest with all processors in mind, the next with one processor fewer and without the
//! largest, and so on. All of those get the same share in the end, rest / processors left, which no one
//! else exceeds. So one number is enough: every share counts up to a ceiling. The queue is sorted by
//! share, so that at most P shares are looked at.

use crate::{ProcessorId, Share};

/// The ceiling for `shares`, largest first, of sum `total`, and the sum of the shares up to it.
///
/// Rounded up: a client at the ceiling has a processor to itself and cannot take from the others what
/// it is promised too much.
pub(super) fn ceiling(shares: impl Iterator<Item = u32>, total: u64, processors: ProcessorId) -> (u32, u64) {
    let (mut rest, mut left, mut infeasible, mut smallest) = (total, u64::from(processors), 0, 1);
    for share in shares {
        if left <= 1 || u64::from(share) * left <= rest {
            break;
        }
        rest -= u64::from(share);
        left -= 1;
        infeasible += 1;
        smallest = share;
    }
    let ceiling = match (infeasible, rest) {
        (0, _) => return (Share::MAX.get(), total),
        // Fewer clients than processors: each has one, and none counts more than another.
        (_, 0) => smallest,
        _ => u32::try_from(rest.div_ceil(left)).unwrap_or(smallest).min(smallest),
    };
    (ceiling, rest + infeasible * u64::from(ceiling))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shares: &[u32], processors: ProcessorId) -> (u32, u64) {
        ceiling(shares.iter().copied(), shares.iter().map(|&share| u64::from(share)).sum(), processors)
    }

    #[test]
    fn vtrr_7_feasible_shares_count_as_they_are() {
        assert_eq!(of(&[3, 2, 1], 2), (Share::MAX.get(), 6), "3 is half of 6: one of two processors");
        assert_eq!(of(&[1000, 1], 1), (Share::MAX.get(), 1001), "one processor can be had whole");
        assert_eq!(of(&[], 4), (Share::MAX.get(), 0));
    }

    #[test]
    fn vtrr_7_a_share_above_one_processors_counts_as_one_processors() {
        assert_eq!(of(&[10, 1, 1], 2), (2, 4), "as much as the other two, who have the other processor");
        assert_eq!(of(&[100, 10, 1, 1, 1], 3), (3, 9), "two of them have a processor each");
    }

    #[test]
    fn vtrr_7_with_a_processor_for_each_nobody_counts_more() {
        assert_eq!(of(&[100, 10, 1], 4), (1, 3));
    }
}
