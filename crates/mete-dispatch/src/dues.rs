//! What the tasks are due that are no clients: the rest of the machine, as one party beside the domains, on all processors
//! together.
//!
//! A domain with fewer threads that can run than its share is processors has one for each of these threads, and no more. What it
//! cannot use is for the others, the rest among them, in proportion to their shares, as generalized multiprocessor sharing has it (A. Chandra, M. Adler, P. Goyal
//! and P. Shenoy, *Surplus Fair Scheduling*, OSDI 2000, section 2). So a thread that is due a whole processor does not step back for the rest's share; the
//! clients of the other domains do.

use mete_kernel::Weight;
use mete_policy::{DomainIndex, Nanoseconds, Share};

/// What is saved for the rest while it needs nothing, for each processor, and what it may owe, in nanoseconds.
const MOST_SAVED: i64 = 10_000_000;
/// Of a processor.
const PPM: u64 = 1_000_000;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Dues {
    /// The rest's share, in the unit of the domains' shares.
    weight: u64,
    domains: Vec<Party>,
    processors: usize,
    /// Who can run, or on how many processors, is not what it was when this was computed.
    is_outdated: bool,
    /// What the rest is due, in millionths of a processor.
    rate_ppm: u64,
    /// What it may have now, in nanoseconds; less than nothing if it had more in pauses that only the kernel asked for.
    saved: i64,
    counted: Nanoseconds,
}

/// A domain.
#[derive(Clone, Copy, Debug, Default)]
struct Party {
    share: u64,
    /// How many of its clients can run.
    ready: u64,
    /// It is due a processor for each of them.
    has_all: bool,
}

impl Dues {
    /// The rest has this share beside domains, which have none yet.
    pub fn new(rest: Weight, now: Nanoseconds) -> Dues {
        Dues {
            weight: u64::from(rest.get()),
            domains: Vec::new(),
            processors: 1,
            is_outdated: true,
            rate_ppm: 0,
            saved: MOST_SAVED,
            counted: now,
        }
    }

    /// A domain has another share from now on.
    pub fn set_share(&mut self, domain: DomainIndex, share: Share) {
        self.party(domain).share = u64::from(share.get());
    }

    /// One more of a domain's clients can run, or one less.
    pub fn set_ready(&mut self, domain: DomainIndex, can_run: bool) {
        let party = self.party(domain);
        party.ready = if can_run { party.ready + 1 } else { party.ready.saturating_sub(1) };
    }

    /// Clients may run on this number of processors.
    pub fn set_processors(&mut self, processors: usize) {
        (self.processors, self.is_outdated) = (processors.max(1), true);
    }

    fn party(&mut self, domain: DomainIndex) -> &mut Party {
        self.is_outdated = true;
        let at = domain.index();
        if self.domains.len() <= at {
            self.domains.resize(at + 1, Party::default());
        }
        &mut self.domains[at]
    }

    /// Time has passed, in which the rest had this much on these processors.
    pub fn pass(&mut self, now: Nanoseconds, had: Nanoseconds) {
        if std::mem::take(&mut self.is_outdated) {
            self.compute();
        }
        let passed = now.saturating_sub(self.counted);
        self.counted = now;
        let due = passed.get().saturating_mul(self.rate_ppm) / PPM;
        let most = MOST_SAVED.saturating_mul(self.processors as i64);
        self.saved =
            self.saved.saturating_add_unsigned(due).saturating_sub_unsigned(had.get()).clamp(-most, most);
    }

    /// A step back for its sake has cost this beside what it had.
    pub fn charge(&mut self, more: Nanoseconds) {
        self.saved = self.saved.saturating_sub_unsigned(more.get());
    }

    /// What it may have now.
    pub fn saved(&self) -> Nanoseconds {
        Nanoseconds::new(self.saved.max(0).unsigned_abs())
    }

    /// How long it takes until it may have this much; the longest time if that is never.
    pub fn until(&self, saved: Nanoseconds) -> Nanoseconds {
        let lacks = saved.get().cast_signed().saturating_sub(self.saved).max(0).unsigned_abs();
        lacks.saturating_mul(PPM).checked_div(self.rate_ppm).map_or(Nanoseconds::MAX, Nanoseconds::new)
    }

    /// Whether a domain's clients are due a whole processor each.
    pub fn has_all(&self, domain: DomainIndex) -> bool {
        self.domains.get(domain.index()).is_some_and(|party| party.has_all)
    }

    /// Gives each domain that its share would give more than it can use what it can use, until none is left: each time the others'
    /// part grows.
    fn compute(&mut self) {
        self.domains.iter_mut().for_each(|party| party.has_all = false);
        let mut left = self.processors as u64;
        let ready = self.domains.iter().filter(|party| party.ready > 0);
        let mut shares = self.weight + ready.map(|party| party.share).sum::<u64>();
        while let Some(party) = self
            .domains
            .iter_mut()
            .find(|party| party.ready > 0 && !party.has_all && party.share * left >= party.ready * shares)
        {
            party.has_all = true;
            left -= party.ready;
            shares -= party.share;
        }
        self.rate_ppm = (left * self.weight * PPM).checked_div(shares).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Dues {
        /// On one processor, and whatever else wants it.
        pub fn of_rate(rate_ppm: u64) -> Dues {
            Dues { rate_ppm, is_outdated: false, ..Dues::new(Weight::ORDINARY, Nanoseconds::ZERO) }
        }
    }

    /// The rest has a share of 1.
    fn dues(processors: usize, domains: &[(u32, usize)]) -> Dues {
        let mut dues = Dues::new(Weight::ORDINARY, Nanoseconds::ZERO);
        dues.set_processors(processors);
        for (nth, (share, ready)) in (1..).zip(domains) {
            dues.set_share(DomainIndex::new(nth), Share::new(100 * share).unwrap());
            (0..*ready).for_each(|_| dues.set_ready(DomainIndex::new(nth), true));
        }
        dues.compute();
        dues
    }

    fn all(dues: &Dues) -> Vec<bool> {
        (1..dues.domains.len()).map(|nth| dues.has_all(DomainIndex::at(nth))).collect()
    }

    #[test]
    fn vtrr_6_where_all_shares_can_be_had_the_rest_has_its_own() {
        let one = dues(1, &[(3, 1), (1, 5)]);
        assert_eq!((one.rate_ppm, all(&one)), (200_000, vec![false; 2]));
        let two = dues(2, &[(1, 1), (1, 1)]);
        assert_eq!((two.rate_ppm, all(&two)), (666_666, vec![false; 2]));
        // One that sleeps takes no part.
        assert_eq!(dues(1, &[(3, 0), (1, 5)]).rate_ppm, 500_000);
    }

    #[test]
    fn vtrr_6_what_a_domain_cannot_use_is_for_the_others() {
        // 1 processor; of the other one each a half.
        let one = dues(2, &[(3, 1), (1, 4)]);
        assert_eq!((one.rate_ppm, all(&one)), (500_000, vec![true, false]));
        // With the first one's out, the second one's is more than it can use, too.
        let both = dues(4, &[(7, 1), (5, 2), (1, 9)]);
        assert_eq!((both.rate_ppm, all(&both)), (500_000, vec![true, true, false]));
        let alone = dues(2, &[(1, 1)]);
        assert_eq!((alone.rate_ppm, all(&alone)), (1_000_000, vec![true]));
    }

    #[test]
    fn vtrr_6_a_share_that_is_as_much_as_can_be_used_leaves_nothing_of_it() {
        let dues = dues(3, &[(100, 1), (100, 1), (100, 1)]);
        // Less than a processor each, by the rest's share.
        assert_eq!((dues.rate_ppm, all(&dues)), (9966, vec![false; 3]));
    }

    #[test]
    fn vtrr_6_what_the_rest_had_is_of_what_it_is_due_and_neither_is_without_end() {
        let mut dues = dues(2, &[(1, 1), (1, 1)]);
        let (ms, at) = (Nanoseconds::from_millis, Nanoseconds::from_millis);
        dues.pass(at(3), Nanoseconds::ZERO);
        dues.pass(at(6), ms(5));
        // 10, 2 and 2 ms were due.
        assert_eq!(dues.saved(), Nanoseconds::new(8_999_996));
        dues.pass(at(9), ms(10));
        assert_eq!(dues.saved(), Nanoseconds::new(999_994));
        dues.pass(at(10), ms(1000));
        // It owes 20 ms at most, which is 30 ms of two thirds of a processor.
        assert_eq!((dues.saved(), dues.until(Nanoseconds::ZERO).get() / 1_000_000), (Nanoseconds::ZERO, 30));
        dues.pass(at(10_000), Nanoseconds::ZERO);
        assert_eq!(dues.saved(), ms(20));
    }
}
