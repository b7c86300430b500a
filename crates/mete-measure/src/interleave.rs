//! Interleaved repetitions: every variant once, then every variant again, many times. This way, other
//! activity of the machine (another load, another clock rate) meets all variants alike. Differences are taken
//! within a round.

use crate::reason::Reason;
use crate::statistics::median;
use mete_base::progress::Progress;

/// The samples of each variant, one for each round.
#[derive(Debug)]
pub struct Samples<V> {
    variants: Vec<(V, Vec<f64>, Option<Reason>)>,
}

/// Measures every variant `rounds` times, after one round that does not count. A variant that fails is left
/// out from then on, and the others go on. Each round measures the variants in the order of `variants`; the
/// one that the others are compared with comes first.
pub fn interleave<V: Copy + PartialEq>(
    what: &str,
    rounds: usize,
    variants: &[V],
    progress: &mut dyn Progress,
    mut measure: impl FnMut(V) -> Result<f64, Reason>,
) -> Samples<V> {
    let mut samples = Samples { variants: variants.iter().map(|&v| (v, Vec::new(), None)).collect() };
    progress.begin(what, rounds as u64 + 1);
    // Round 0 does not count, because caches and branch predictors are cold in it.
    for round in 0..=rounds {
        for (variant, values, failure) in &mut samples.variants {
            if progress.is_cancelled() {
                return samples;
            }
            match failure.is_none().then(|| measure(*variant)) {
                Some(Ok(value)) if round > 0 => values.push(value),
                Some(Err(reason)) => *failure = Some(reason),
                _ => {}
            }
        }
        progress.step();
    }
    samples
}

impl<V: Copy + PartialEq> Samples<V> {
    /// The samples of one variant.
    ///
    /// # Errors
    ///
    /// The reason why it could not be measured.
    pub fn of(&self, variant: V) -> Result<Vec<f64>, Reason> {
        let found = self.variants.iter().find(|(known, ..)| *known == variant);
        match found {
            Some((_, values, None)) if !values.is_empty() => Ok(values.clone()),
            Some((_, _, Some(reason))) => Err(reason.clone()),
            _ => Err(Reason::new("stopped before it was measured")),
        }
    }

    /// What a variant costs beyond another one, round by round.
    ///
    /// # Errors
    ///
    /// The reason why one of them could not be measured.
    pub fn net(&self, variant: V, base: V) -> Result<Vec<f64>, Reason> {
        let (with, without) = (self.of(variant)?, self.of(base)?);
        Ok(with.iter().zip(&without).map(|(with, without)| with - without).collect())
    }

    /// The quotients of a variant's net cost and the net cost of `to`: see [`quotients`].
    ///
    /// # Errors
    ///
    /// The reason why one of them could not be measured; or that `to` costs nothing that can be measured.
    pub fn ratio(&self, variant: V, to: V, base: V) -> Result<Vec<f64>, Reason> {
        quotients(&self.net(variant, base)?, &self.net(to, base)?)
    }
}

/// Quotients of samples that were taken in the same rounds. Rounds are grouped in blocks, and each quotient
/// is a median of a block over a median of the same block: a quotient of two single differences would mostly
/// be a quotient of their noise. If noise leaves nothing of a block's divisor, the block says nothing, and
/// its quotient is not a number. Dropping such blocks would make the other ones look surer than they are, and
/// the divisor larger.
///
/// # Errors
///
/// If no block has a quotient.
pub fn quotients(dividends: &[f64], divisors: &[f64]) -> Result<Vec<f64>, Reason> {
    // Both were taken in the same rounds, but a cancellation can leave one sample more.
    let rounds = dividends.len().min(divisors.len());
    let block = (rounds / BLOCKS).clamp(1, LARGEST_BLOCK);
    let blocks = dividends[..rounds].chunks_exact(block).zip(divisors[..rounds].chunks_exact(block));
    let medians = blocks.filter_map(|(dividends, divisors)| Some((median(dividends)?, median(divisors)?)));
    let quotient = |(dividend, divisor)| if divisor > 0.0 { dividend / divisor } else { f64::NAN };
    let quotients: Vec<f64> = medians.map(quotient).collect();
    // An empty list counts as well: then there were no samples.
    if quotients.iter().all(|quotient| quotient.is_nan()) {
        return Err(Reason::new("what it is compared with costs nothing that can be measured here"));
    }
    Ok(quotients)
}

/// The least number of blocks before a block gets a second round.
const BLOCKS: usize = 8;
/// The greatest number of rounds of a block.
const LARGEST_BLOCK: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    struct StopAfter(u64);

    impl Progress for StopAfter {
        fn begin(&mut self, _what: &str, _steps: u64) {}
        fn step(&mut self) {
            self.0 -= 1;
        }
        fn is_cancelled(&self) -> bool {
            self.0 == 0
        }
    }

    #[test]
    fn log_17_variants_alternate_and_the_first_round_does_not_count() {
        let mut order = Vec::new();
        let samples = interleave("test", 2, &['a', 'b'], &mut (), |variant| {
            order.push(variant);
            Ok(order.len() as f64)
        });
        assert_eq!(order, ['a', 'b', 'a', 'b', 'a', 'b']);
        assert_eq!(samples.of('a').unwrap(), [3.0, 5.0]);
        assert_eq!(samples.net('b', 'a').unwrap(), [1.0, 1.0]);
    }

    #[test]
    fn a_variant_that_fails_is_left_out_and_the_others_go_on() {
        let samples = interleave("test", 3, &[1, 2], &mut (), |variant| match variant {
            1 => Ok(1.0),
            _ => Err(Reason::new("not here")),
        });
        assert_eq!(samples.of(1).unwrap().len(), 3);
        assert_eq!(samples.net(2, 1), Err(Reason::new("not here")));
    }

    #[test]
    fn cancelling_keeps_the_results_so_far() {
        let samples = interleave("test", 9, &[1], &mut StopAfter(3), |_| Ok(1.0));
        assert_eq!(samples.of(1).unwrap().len(), 2);
        let none = interleave("test", 9, &[1], &mut StopAfter(1), |_| Ok(1.0));
        assert!(none.of(1).is_err());
    }

    #[test]
    fn log_17_rounds_in_which_nothing_is_left_to_compare_with_have_no_quotient() {
        let quotients_of_two = quotients(&[2.0, 3.0], &[1.0, -0.1]).unwrap();
        assert!(quotients_of_two[0] == 2.0 && quotients_of_two[1].is_nan());
        assert!(quotients(&[2.0], &[0.0]).is_err());
    }

    #[test]
    fn many_rounds_are_compared_in_blocks_by_their_medians() {
        let mut dividends = vec![2.0; 40];
        // One in each block of five is disturbed.
        dividends.iter_mut().step_by(5).for_each(|sample| *sample = 900.0);
        assert_eq!(quotients(&dividends, &[1.0; 40]).unwrap(), [2.0; 8]);
    }
}
