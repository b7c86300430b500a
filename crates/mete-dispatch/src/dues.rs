//! What the tasks are due that are no clients: the rest of the machine, as one party beside the domains, on all processors
//! together. And which domains are ahead of what they are due: those make room for the rest.
//!
//! A domain whose share comes to more processors than it has threads that can run has one for each of these threads. What it
//! cannot use is for the others, the rest among them, in proportion to their shares, as generalized multiprocessor sharing has it (A. Chandra, M. Adler, P. Goyal
//! and P. Shenoy, *Surplus Fair Scheduling*, OSDI 2000, section 2). So a thread that is due a whole processor does not step back for the rest's share; the
//! clients of the other domains do. The same holds for domains that are bound to some processors, together. The threads of a domain that are bound can use the
//! processors together that any of them may run on: that is exact where all are bound to the same ones or to none, and else at most too much. To which processors
//! the rest's tasks are bound is not known.

use mete_kernel::Weight;
use mete_policy::{DomainIndex, Nanoseconds, Share};

/// What is saved for the rest while it needs nothing, for each processor, and what it may owe, in nanoseconds.
const MOST_SAVED: i64 = 10_000_000;
/// What a domain is behind at most for each processor, in nanoseconds: what is more is forgotten.
const MOST_BEHIND: i64 = 50_000_000;
/// By how much a client of a domain has given less at most than another one.
const MOST_APART: Nanoseconds = Nanoseconds::from_millis(20);
/// Of a processor.
const PPM: u64 = 1_000_000;
/// How many masks of domains are looked at together. Of others, each is by itself.
const MOST_MASKS: usize = 5;
/// The mask of a client that is not bound.
const ANYWHERE: u64 = u64::MAX;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Dues {
    /// The rest's share, in the unit of the domains' shares.
    weight: u64,
    domains: Vec<Party>,
    /// On which of the first 64 processors clients may run, and on how many in all.
    used: u64,
    all: u64,
    /// On which of them those may that can run, and how many these are.
    usable: u64,
    processors: u64,
    /// Who can run, or on how many processors, is not what it was when this was computed.
    is_outdated: bool,
    /// Another domain can run, or one can no more.
    are_others: bool,
    /// What the rest is due, in millionths of a processor.
    rate_ppm: u64,
    /// What it may have now, in nanoseconds; less than nothing if it had more.
    saved: i64,
    counted: Nanoseconds,
}

/// A domain.
#[derive(Clone, Debug, Default)]
struct Party {
    share: u64,
    /// How many of its clients the policy takes for ready, for each mask of processors: one that has blocked without having been chosen, until it is.
    ready: Vec<(u64, u64)>,
    /// It is due all that they can use: a processor for each, or those to which they are bound.
    has_all: bool,
    /// What it is due, in millionths of a processor.
    rate_ppm: u64,
    /// By how much it is ahead of what it is due, in nanoseconds, beside the one that is ahead most of those that can run.
    ahead: i64,
    /// The same with what its clients were not charged for yet, as it was compared last.
    compared: i64,
    /// What each of its clients counts as having given to the rest, at least.
    given: Nanoseconds,
}

impl Dues {
    /// The rest has this share beside domains, which have none yet.
    pub fn new(rest: Weight, now: Nanoseconds) -> Dues {
        Dues {
            weight: u64::from(rest.get()),
            domains: Vec::new(),
            used: 1,
            all: 1,
            usable: ANYWHERE,
            processors: 1,
            is_outdated: true,
            are_others: false,
            rate_ppm: 0,
            saved: MOST_SAVED,
            counted: now,
        }
    }

    /// A domain has another share from now on.
    pub fn set_share(&mut self, domain: DomainIndex, share: Share) {
        self.party(domain).share = u64::from(share.get());
    }

    /// One more of a domain's clients can run, or one less, which may do so on these of the first 64 processors.
    pub fn set_ready(&mut self, domain: DomainIndex, allowed: u64, can_run: bool) {
        let ready = &mut self.party(domain).ready;
        let could_run = !ready.is_empty();
        match (ready.iter_mut().find(|(mask, _)| *mask == allowed), can_run) {
            (Some((_, count)), true) => *count += 1,
            (None, true) => ready.push((allowed, 1)),
            (Some((_, count)), false) => *count = count.saturating_sub(1),
            (None, false) => {}
        }
        ready.retain(|(_, count)| *count > 0);
        self.are_others |= could_run == ready.is_empty();
    }

    /// Clients may run on these processors.
    pub fn set_processors(&mut self, used: impl Iterator<Item = usize>) {
        (self.used, self.all, self.is_outdated) = (0, 0, true);
        for processor in used {
            self.all += 1;
            self.used |= if processor < 64 { 1 << processor } else { 0 };
        }
    }

    /// Whether what the rest has on a processor of clients is of what it is due: whether any may use it that can run. As for policies, a
    /// processor beyond the first 64 is in the mask of all only.
    pub fn counts(&self, processor: usize) -> bool {
        self.usable == ANYWHERE || processor < 64 && self.usable >> processor & 1 == 1
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
        let passed = now.saturating_sub(self.counted);
        self.counted = now;
        let due = passed.get().saturating_mul(self.rate_ppm) / PPM;
        let most = self.most_saved();
        self.saved =
            self.saved.saturating_add_unsigned(due).saturating_sub_unsigned(had.get()).clamp(-most, most);
        self.fall_behind(passed);
        // Only now: until now, others could run, or had other shares.
        if std::mem::take(&mut self.is_outdated) {
            self.compute();
        }
    }

    /// Time has passed, in which each domain was due its part. What all of them lose alike, to the manager itself for instance, is of no account.
    /// One that sleeps keeps its lead.
    fn fall_behind(&mut self, passed: Nanoseconds) {
        for party in &mut self.domains {
            party.ahead -= (passed.get().saturating_mul(party.rate_ppm) / PPM).cast_signed();
        }
        let ready = self.domains.iter().filter(|party| !party.ready.is_empty());
        let foremost = ready.map(|party| party.ahead).max().unwrap_or(0);
        let most = MOST_BEHIND.saturating_mul(self.processors.cast_signed());
        // Who sleeps has no part in what they lose.
        let are_others = std::mem::take(&mut self.are_others);
        for party in self.domains.iter_mut().filter(|party| are_others || !party.ready.is_empty()) {
            party.ahead = party.ahead.saturating_sub(foremost).clamp(-most, most);
        }
    }

    /// A domain's client has had this.
    pub fn used(&mut self, domain: DomainIndex, ran: Nanoseconds) {
        if let Some(party) = self.domains.get_mut(domain.index()) {
            party.ahead = party.ahead.saturating_add_unsigned(ran.get());
        }
    }

    /// Domains are compared: after this, what their clients were not charged for yet is added.
    pub fn compare(&mut self) {
        self.domains.iter_mut().for_each(|party| party.compared = party.ahead);
    }

    /// A client of a domain was not charged for this yet.
    pub fn add_to_comparison(&mut self, domain: DomainIndex, more: Nanoseconds) {
        if let Some(party) = self.domains.get_mut(domain.index()) {
            party.compared = party.compared.saturating_add_unsigned(more.get());
        }
    }

    /// By how much a domain is ahead of what it is due, in nanoseconds, as they were compared last; only the difference between two means anything.
    pub fn ahead(&self, domain: DomainIndex) -> i64 {
        self.domains.get(domain.index()).map_or(0, |party| party.compared)
    }

    /// A client of a domain has given this to the rest, so far. Differences that are too large to be made up for soon are forgotten.
    pub fn has_given(&mut self, domain: DomainIndex, given: Nanoseconds) {
        if let Some(party) = self.domains.get_mut(domain.index()) {
            party.given = party.given.max(given.saturating_sub(MOST_APART));
        }
    }

    /// What each client of a domain counts as having given, at least: one that has slept is not made to pay for that.
    pub fn least_given(&self, domain: DomainIndex) -> Nanoseconds {
        self.domains.get(domain.index()).map_or(Nanoseconds::ZERO, |party| party.given)
    }

    /// A step back for its sake has cost this beside what it had.
    pub fn charge(&mut self, more: Nanoseconds) {
        self.saved = self.saved.saturating_sub_unsigned(more.get());
    }

    /// What it may have now.
    pub fn saved(&self) -> Nanoseconds {
        Nanoseconds::new(self.saved.max(0).unsigned_abs())
    }

    fn most_saved(&self) -> i64 {
        MOST_SAVED.saturating_mul(self.processors.cast_signed())
    }

    /// Whether it has had much less than it was due.
    pub fn is_much_saved(&self) -> bool {
        self.saved >= self.most_saved() / 2
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

    /// Gives domains that are due more than they can use what they can use, those first that have least for their shares, until none is left:
    /// each time the others' part grows.
    fn compute(&mut self) {
        self.domains.iter_mut().for_each(|party| (party.has_all, party.rate_ppm) = (false, 0));
        let ready = self.domains.iter().filter(|party| !party.ready.is_empty());
        let usable = ready.clone().map(Party::may_use).reduce(|one, other| one | other);
        self.usable = usable.unwrap_or(ANYWHERE);
        self.processors = self.count(self.usable).max(1);
        let masks = self.masks();
        let mut left = self.processors * PPM;
        let mut shares = self.weight + ready.map(|party| party.share).sum::<u64>();
        while let Some(full) = self.find_full(&masks, left, shares) {
            for at in 0..self.domains.len() {
                if full.has(at, &self.domains[at]) {
                    let party = &mut self.domains[at];
                    (party.has_all, party.rate_ppm) = (true, full.left * party.share / full.shares);
                    left = left.saturating_sub(party.rate_ppm);
                    shares -= party.share;
                }
            }
        }
        // There are shares left: those of the rest.
        self.rate_ppm = left * self.weight / shares;
        let others = self.domains.iter_mut().filter(|party| !party.has_all && !party.ready.is_empty());
        others.for_each(|party| party.rate_ppm = left * party.share / shares);
    }

    /// The masks of domains that are bound, and how many of them there are.
    fn masks(&self) -> ([u64; MOST_MASKS], usize) {
        let (mut masks, mut many) = ([0; MOST_MASKS], 0);
        for mask in self.domains.iter().filter(|party| !party.ready.is_empty()).map(Party::may_use) {
            let is_bound = self.used & !mask != 0;
            if is_bound && !masks[..many].contains(&mask) && many < MOST_MASKS {
                masks[many] = mask;
                many += 1;
            }
        }
        (masks, many)
    }

    /// What has the least for its shares of those that are due all that they can use, if any is: a domain with all its threads, or the domains that are bound to
    /// some processors with all of these.
    fn find_full(&self, (masks, many): &([u64; MOST_MASKS], usize), left: u64, shares: u64) -> Option<Full> {
        let each = self.domains.iter().enumerate().filter(|(_, party)| party.is_left());
        let by_threads = each.map(|(at, party)| {
            let threads = party.ready.iter().map(|(_, count)| count).sum::<u64>();
            let can_use = threads.min(self.count(party.may_use())) * PPM;
            Full { of: Of::Domain(at), left: can_use, shares: party.share }
        });
        // All sums of them.
        let by_masks = (1..1_usize << many).map(|which| {
            let of_sum = (0..*many).filter(|nth| which >> nth & 1 == 1);
            self.full_of(of_sum.fold(0, |sum, nth| sum | masks[nth]))
        });
        // A domain may be bound where clients are not known to run yet.
        let is_full =
            |full: &Full| full.left > 0 && full.shares > 0 && full.shares * left >= full.left * shares;
        let all = by_threads.chain(by_masks).filter(is_full);
        all.min_by(|one, other| (one.left * other.shares).cmp(&(other.left * one.shares)))
    }

    /// The domains that are bound to these processors, and what is left there for them.
    fn full_of(&self, mask: u64) -> Full {
        let bound =
            self.domains.iter().filter(|party| !party.ready.is_empty() && party.may_use() & !mask == 0);
        let had: u64 = bound.clone().filter(|party| party.has_all).map(|party| party.rate_ppm).sum();
        let shares = bound.filter(|party| !party.has_all).map(|party| party.share).sum();
        Full { of: Of::Mask(mask), left: (self.count(mask) * PPM).saturating_sub(had), shares }
    }

    /// How many processors in a mask clients may run on.
    fn count(&self, mask: u64) -> u64 {
        if mask == ANYWHERE { self.all } else { u64::from((mask & self.used).count_ones()) }
    }
}

/// Domains that are due all that they can use.
struct Full {
    of: Of,
    /// What they can use together, in millionths of a processor, and their shares.
    left: u64,
    shares: u64,
}

enum Of {
    Domain(usize),
    /// Those that are bound to these processors.
    Mask(u64),
}

impl Full {
    fn has(&self, at: usize, party: &Party) -> bool {
        let is_of = match self.of {
            Of::Domain(domain) => domain == at,
            Of::Mask(mask) => party.may_use() & !mask == 0,
        };
        is_of && party.is_left()
    }
}

impl Party {
    /// Whether it can run, and it was not found yet that it has all.
    fn is_left(&self) -> bool {
        !self.ready.is_empty() && !self.has_all
    }

    /// The processors on which any of its clients may run that can.
    fn may_use(&self) -> u64 {
        self.ready.iter().fold(0, |all, (mask, _)| all | mask)
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
        let domains: Vec<_> = domains.iter().map(|(share, ready)| (*share, *ready, ANYWHERE)).collect();
        bound(processors, &domains)
    }

    /// And threads are bound.
    fn bound(processors: usize, domains: &[(u32, usize, u64)]) -> Dues {
        let mut dues = Dues::new(Weight::ORDINARY, Nanoseconds::ZERO);
        dues.set_processors(0..processors);
        for (nth, (share, ready, mask)) in (1..).zip(domains) {
            dues.set_share(DomainIndex::new(nth), Share::new(100 * share).unwrap());
            (0..*ready).for_each(|_| dues.set_ready(DomainIndex::new(nth), *mask, true));
        }
        dues.compute();
        dues
    }

    #[test]
    fn vtrr_6_threads_that_are_bound_use_no_more_than_what_they_are_bound_to() {
        // Two on one processor: it is theirs, and of the other one each has a half.
        let one = bound(2, &[(10, 2, 1), (1, 4, ANYWHERE)]);
        assert_eq!((one.rate_ppm, all(&one)), (500_000, vec![true, false]));
        let each = bound(2, &[(10, 4, 1), (1, 2, 2)]);
        assert_eq!((each.rate_ppm, all(&each)), (500_000, vec![true, false]));
        // All on one: the other one is not dealt out.
        let both = bound(2, &[(1, 2, 1), (2, 2, 1)]);
        assert_eq!((both.rate_ppm, all(&both)), (250_000, vec![false; 2]));
        assert_eq!([0, 1, 2].map(|processor| both.counts(processor)), [true, false, false]);
        // One that may run on more, and sleeps, changes nothing.
        let mut both = bound(2, &[(1, 2, 1), (2, 2, 1)]);
        both.set_ready(DomainIndex::new(1), 3, true);
        both.set_ready(DomainIndex::new(1), 3, false);
        both.compute();
        assert_eq!(both.rate_ppm, 250_000);
    }

    /// What the domains of one processor leave of it is not the rest's, also where none of them would be due all of it by itself.
    #[test]
    fn vtrr_6_domains_that_are_bound_to_the_same_processors_use_no_more_than_these_together() {
        let rates = |dues: &Dues| {
            let of_domains = dues.domains[1..].iter().map(|party| party.rate_ppm);
            of_domains.chain([dues.rate_ppm]).collect::<Vec<_>>()
        };
        let two = bound(2, &[(100, 1, 1), (100, 1, 1), (1, 2, ANYWHERE)]);
        assert_eq!((rates(&two), all(&two)), (vec![500_000; 4], vec![true, true, false]));
        let two = bound(2, &[(3, 1, 1), (1, 1, 1), (1, 2, ANYWHERE)]);
        assert_eq!(
            (rates(&two), all(&two)),
            (vec![750_000, 250_000, 500_000, 500_000], vec![true, true, false])
        );
        // The first has one processor, the next two the other one of two, and the last one and the rest what is left.
        let nested = bound(4, &[(30, 1, 1), (10, 1, 3), (5, 2, 3), (1, 4, ANYWHERE)]);
        assert_eq!(rates(&nested), [1_000_000, 666_666, 333_333, 1_000_000, 1_000_000]);
        // One that is bound where none is known to run is as if it were not bound.
        assert_eq!(rates(&bound(2, &[(1, 1, 4), (1, 1, 1)])), [333_333; 3]);
        // One that is bound there with little leaves the rest its part.
        let little = bound(2, &[(1, 1, 1), (1, 1, 1), (1, 2, 2)]);
        assert_eq!((rates(&little), all(&little)), (vec![500_000; 4], vec![true, true, false]));
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
    }

    #[test]
    fn vtrr_6_a_share_that_is_as_much_as_can_be_used_leaves_nothing_of_it_and_one_that_is_less_does() {
        let less = dues(3, &[(100, 1), (100, 1), (100, 1)]);
        // Each has 300 of 301 parts of a processor.
        assert_eq!((less.rate_ppm, all(&less)), (9966, vec![false; 3]));
        let as_much = dues(2, &[(1, 1)]);
        assert_eq!((as_much.rate_ppm, all(&as_much)), (1_000_000, vec![true]));
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

    #[test]
    fn vtrr_6_what_the_rest_is_due_follows_who_can_run_and_shares_and_processors() {
        let (one, two) = (DomainIndex::new(1), DomainIndex::new(2));
        let share = |share| Share::new(share).unwrap();
        let mut dues = dues(2, &[(3, 0), (1, 0)]);
        let mut rate = |tell: &dyn Fn(&mut Dues)| {
            tell(&mut dues);
            dues.pass(Nanoseconds::ZERO, Nanoseconds::ZERO);
            (dues.rate_ppm, dues.has_all(one))
        };
        assert_eq!(rate(&|_| ()), (2_000_000, false));
        assert_eq!(rate(&|dues| dues.set_ready(one, ANYWHERE, true)), (1_000_000, true));
        assert_eq!(rate(&|dues| dues.set_ready(two, ANYWHERE, true)), (500_000, true));
        assert_eq!(rate(&|dues| dues.set_share(one, share(100))), (666_666, false));
        assert_eq!(rate(&|dues| dues.set_share(one, share(300))), (500_000, true));
        assert_eq!(rate(&|dues| dues.set_processors(0..1)), (200_000, false));
        assert_eq!(rate(&|dues| dues.set_ready(two, ANYWHERE, false)), (250_000, false));
        assert_eq!(rate(&|dues| dues.set_ready(one, ANYWHERE, false)), (1_000_000, false));
    }

    #[test]
    fn vtrr_6_a_domain_is_ahead_by_what_it_used_beside_what_it_was_due_and_beside_the_others() {
        let (one, two) = (DomainIndex::new(1), DomainIndex::new(2));
        let ms = Nanoseconds::from_millis;
        // Of two processors, 1, a half, and a half for the rest.
        let mut dues = dues(2, &[(2, 2), (1, 2)]);
        let mut ahead = |at: u64, used: [u64; 2]| {
            let of_each = [one, two].into_iter().zip(used);
            of_each.for_each(|(domain, used)| dues.used(domain, ms(used)));
            dues.pass(ms(at), Nanoseconds::ZERO);
            dues.compare();
            (dues.ahead(one) / 1_000_000, dues.ahead(two) / 1_000_000)
        };
        assert_eq!(ahead(10, [10, 5]), (0, 0));
        // What all lack is of no account.
        assert_eq!(ahead(20, [7, 2]), (0, 0));
        assert_eq!(ahead(30, [8, 9]), (-6, 0));
        assert_eq!(ahead(40, [15, 4]), (0, 0));
        assert_eq!(ahead(1040, [0, 900]), (-2 * MOST_BEHIND / 1_000_000, 0));
        // One that sleeps keeps its lead.
        let two_sleeps = |dues: &mut Dues, at: u64| {
            (0..2).for_each(|_| dues.set_ready(two, ANYWHERE, false));
            dues.pass(ms(at), Nanoseconds::ZERO);
        };
        two_sleeps(&mut dues, 1040);
        dues.pass(ms(1050), Nanoseconds::ZERO);
        dues.compare();
        assert_eq!((dues.ahead(one), dues.ahead(two)), (0, 2 * MOST_BEHIND));
        dues.add_to_comparison(one, ms(3));
        assert_eq!(dues.ahead(one), 3_000_000);
    }

    #[test]
    fn vtrr_6_a_domain_that_sleeps_has_no_lead_from_what_the_others_lack() {
        let (one, two) = (DomainIndex::new(1), DomainIndex::new(2));
        let mut dues = dues(2, &[(1, 2), (1, 2)]);
        (0..2).for_each(|_| dues.set_ready(two, ANYWHERE, false));
        dues.pass(Nanoseconds::ZERO, Nanoseconds::ZERO);
        for second in 1..=10 {
            dues.used(one, Nanoseconds::from_millis(900));
            dues.pass(Nanoseconds::from_secs(second), Nanoseconds::ZERO);
        }
        (0..2).for_each(|_| dues.set_ready(two, ANYWHERE, true));
        dues.pass(Nanoseconds::from_secs(10), Nanoseconds::ZERO);
        dues.compare();
        assert_eq!((dues.ahead(one), dues.ahead(two)), (0, 0));
    }

    #[test]
    fn vtrr_6_one_that_is_due_all_is_due_a_processor_for_each_of_its_threads_and_one_that_sleeps_nothing() {
        let one = DomainIndex::new(1);
        let mut dues = dues(4, &[(30, 2), (1, 4)]);
        let rates = |dues: &Dues| dues.domains[1..].iter().map(|party| party.rate_ppm).collect::<Vec<_>>();
        assert_eq!((rates(&dues), dues.rate_ppm), (vec![2_000_000, 1_000_000], 1_000_000));
        (0..2).for_each(|_| dues.set_ready(one, ANYWHERE, false));
        dues.compute();
        assert_eq!((rates(&dues), dues.rate_ppm), (vec![0, 2_000_000], 2_000_000));
    }

    #[test]
    fn vtrr_6_what_has_passed_is_due_by_what_was() {
        let one = DomainIndex::new(1);
        let mut dues = dues(1, &[(1, 0)]);
        let ms = Nanoseconds::from_millis;
        dues.pass(ms(1), ms(11));
        assert_eq!(dues.saved(), Nanoseconds::ZERO);
        // It slept until now.
        dues.set_ready(one, ANYWHERE, true);
        dues.pass(ms(3), Nanoseconds::ZERO);
        assert_eq!(dues.saved(), ms(2));
        dues.pass(ms(5), Nanoseconds::ZERO);
        assert_eq!(dues.saved(), ms(3));
    }
}
