//! How lengths are spread: counts in buckets, as in a histogram with a high dynamic range. Each length below
//! 64 has a bucket of its own. Above that, each power of two has 32 buckets. So the middle of a bucket
//! differs from a length in it by at most 1/64, whatever the length, and a distribution has a fixed size.
//! Written by hand, because nothing may be allocated while logs are read: the memory of all domains is
//! reserved once.

use mete_log::DomainId;

/// The number of lengths that have a bucket of their own.
const EXACT: u64 = 64;
/// The number of buckets in each power of two above that.
const IN_OCTAVE: usize = 32;
/// The number of all buckets, for lengths of 64 bits.
const BUCKETS: usize = EXACT as usize + (u64::BITS - EXACT.ilog2()) as usize * IN_OCTAVE;

/// The distributions of one event in all domains. All memory is reserved at the beginning and reads as zero.
/// The kernel finds room for a domain's part when that part is first written.
#[derive(Clone, Debug)]
pub(super) struct AllLengths(Vec<u64>);

impl AllLengths {
    pub fn new(domains: usize) -> AllLengths {
        AllLengths(vec![0; domains * BUCKETS])
    }

    /// Adds a length this number of times. Allocates nothing.
    pub fn add(&mut self, domain: DomainId, length: u64, times: u64) {
        if let Some(count) = self.0.get_mut(domain.index() * BUCKETS + bucket(length)) {
            *count = count.saturating_add(times);
        }
    }

    pub fn of(&self, domain: DomainId) -> Lengths {
        let counts = self.0.chunks_exact(BUCKETS).nth(domain.index()).unwrap_or_default().iter().enumerate();
        Lengths(counts.filter(|(_, count)| **count > 0).map(|(bucket, count)| (bucket, *count)).collect())
    }
}

/// How the lengths of one event in one domain are spread. They are in the unit in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lengths(Vec<(usize, u64)>);

impl Lengths {
    /// The number of lengths.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The least length that is not exceeded by this part of all lengths; `None` if there are none. With a
    /// part of 0.99, one length in a hundred is larger. The result is off by at most 1/64.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        // At least the first length, also for a part of 0.
        let wanted = ((self.count() as f64 * part).ceil() as u64).max(1);
        let mut before = 0_u64;
        let holds_it = self.0.iter().find(|(_, count)| {
            before = before.saturating_add(*count);
            before >= wanted
        });
        // Rounding in `f64` may ask for more lengths than there are; then the last bucket has the answer.
        holds_it.or(self.0.last()).map(|(bucket, _)| middle(*bucket))
    }

    /// The lengths that were added since an earlier look.
    pub fn since(&self, earlier: &Lengths) -> Lengths {
        let newly = self.0.iter().map(|&(bucket, count)| {
            let before = earlier.0.iter().find(|(other, _)| *other == bucket).map_or(0, |(_, count)| *count);
            (bucket, count.saturating_sub(before))
        });
        Lengths(newly.filter(|(_, count)| *count > 0).collect())
    }
}

fn bucket(length: u64) -> usize {
    if length < EXACT {
        return length as usize;
    }
    // The shift leaves a number from 32 to 63: the first six binary digits.
    let shift = length.ilog2() - IN_OCTAVE.ilog2();
    shift as usize * IN_OCTAVE + (length >> shift) as usize
}

fn middle(bucket: usize) -> f64 {
    if (bucket as u64) < EXACT {
        return bucket as f64;
    }
    // The inverse of `bucket`. The quotient is the shift plus one, because the number that is left begins at
    // 32.
    let shift = (bucket / IN_OCTAVE - 1) as u32;
    let first = ((bucket % IN_OCTAVE + IN_OCTAVE) as u64) << shift;
    first as f64 + ((1_u64 << shift) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const D0: DomainId = DomainId::new(0);
    const D1: DomainId = DomainId::new(1);
    const D2: DomainId = DomainId::new(2);

    /// Numbers that look random, and are the same ones each time.
    fn numbers() -> impl Iterator<Item = u64> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        })
    }

    #[test]
    fn log_13_quantiles_are_those_of_a_sorted_list_within_a_sixty_fourth() {
        // In order: lengths of all sizes; equal lengths; two lengths far apart; lengths of 64 bits; a few;
        // one.
        let of_all_sizes = numbers().zip(numbers().skip(7)).map(|(one, other)| one >> (other % 64));
        let lists: [Vec<u64>; 6] = [
            of_all_sizes.take(100_000).collect(),
            vec![12_345; 1000],
            (0..1000).map(|nth| if nth < 985 { 70 } else { 1 << 40 }).collect(),
            numbers().take(10_000).collect(),
            vec![u64::MAX, 0, 63, 64, 65],
            vec![77],
        ];
        for mut list in lists {
            let mut all = AllLengths::new(3);
            list.iter().for_each(|length| all.add(D1, *length, 1));
            list.sort_unstable();
            let lengths = all.of(D1);
            assert_eq!(lengths.count(), list.len() as u64);
            for part in [0.0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0] {
                let rank = ((list.len() as f64 * part).ceil() as usize).max(1);
                let (exact, found) = (list[rank - 1] as f64, lengths.quantile(part).expect("there are some"));
                assert!((found - exact).abs() <= exact / 64.0, "{part}: {found} for {exact}");
            }
            assert_eq!((all.of(D0).count(), all.of(D2).quantile(0.5)), (0, None), "other domains have none");
        }
    }

    #[test]
    fn log_13_every_length_is_in_the_bucket_that_tells_it() {
        let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for length in edges.chain([u64::MAX]) {
            assert!(bucket(length) < BUCKETS);
            assert!((middle(bucket(length)) - length as f64).abs() <= length as f64 / 64.0, "{length}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn log_13_a_part_has_the_lengths_that_came_in_it() {
        let mut all = AllLengths::new(1);
        all.add(D0, 10, 5);
        let before = all.of(D0);
        all.add(D0, 20, 2);
        all.add(D0, 10, 1);
        all.add(D1, 10, 1);
        let part = all.of(D0).since(&before);
        assert_eq!((part.count(), part.quantile(0.1), part.quantile(1.0)), (3, Some(10.0), Some(20.0)));
    }
}
