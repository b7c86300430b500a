//! Processor service time: which domain ran where, for how long, and which domain runs now (thesis §4.5.3,
//! processor affinity).
//!
//! A row is written when a domain leaves the processor, so a domain that does not leave causes no row. But
//! the row before it says which domain came, and its stamp says when. The analysis charges what that phase
//! has taken so far at every poll. The row that ends the phase is then charged for the rest only. If the
//! phase took less than was charged, because the kernel did not report the switch that ended it, the
//! difference is taken back.

use mete_log::DomainId;

use super::matrix::Counts;
use crate::domains::IDLE;

/// A stamp that is further than this ahead of the clock is garbage.
const MAX_AHEAD_NS: u64 = 1_000_000_000;

/// What is known about the phase that a processor is in.
#[derive(Clone, Debug)]
struct RunningPhase {
    /// The domain that came last, and when it came.
    newest: Option<(DomainId, u64)>,
    /// How much each domain was charged in advance of the row that ends its phase. Usually only one domain
    /// was. But rows of later phases, of other domains, may be read before that row.
    advance_ns: Vec<u64>,
}

impl RunningPhase {
    fn take_advance(&mut self, domain: DomainId) -> u64 {
        self.advance_ns.get_mut(domain.index()).map_or(0, std::mem::take)
    }
}

/// When and where a domain was last seen on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastSeen {
    /// The processor.
    pub processor: usize,
    /// The time, by the monotonic clock.
    pub at_ns: u64,
}

/// Service time of every domain on every processor. See the [module](self).
#[derive(Clone, Debug)]
pub struct Service {
    /// Nanoseconds, processor by domain.
    used: Counts,
    /// By processor.
    now: Vec<RunningPhase>,
    /// By domain.
    last: Vec<Option<LastSeen>>,
    domains: usize,
}

impl Service {
    pub(super) fn new(processors: usize, domains: usize) -> Service {
        let used = Counts::new(processors, domains);
        let now = vec![RunningPhase { newest: None, advance_ns: vec![0; domains] }; processors];
        Service { used, now, last: vec![None; domains], domains }
    }

    /// Nanoseconds, processor by domain.
    pub fn used(&self) -> &Counts {
        &self.used
    }

    /// Nanoseconds of a domain on all processors since the beginning.
    pub fn total_ns(&self, domain: DomainId) -> u64 {
        self.used.total().column(domain.index()).fold(0, u64::saturating_add)
    }

    /// Nanoseconds of a domain on all processors in the last period.
    pub fn period_ns(&self, domain: DomainId) -> u64 {
        self.used.period().column(domain.index()).fold(0, u64::saturating_add)
    }

    /// The nanoseconds of a processor that were not idle in the last period; `None` if there was no row about
    /// it at all.
    pub fn busy_ns(&self, processor: usize) -> Option<u64> {
        let row = self.used.period().row(processor);
        let all = row.iter().fold(0u64, |sum, &ns| sum.saturating_add(ns));
        (all > 0).then(|| all - row.get(IDLE.index()).copied().unwrap_or(0))
    }

    /// The processor on which a domain was most recently.
    pub fn last_seen(&self, domain: DomainId) -> Option<LastSeen> {
        self.last.get(domain.index()).copied().flatten()
    }

    /// The processor on which a domain has recently run most.
    pub fn most_run(&self, domain: DomainId) -> Option<usize> {
        let of_processors = self.used.recent().column(domain.index()).enumerate();
        let most = of_processors
            .filter(|&(_, ns)| ns > 0)
            // Of several equal ones the first, so that the answer does not swing between them.
            .max_by_key(|&(processor, ns)| (ns, usize::MAX - processor));
        most.map(|(processor, _)| processor)
    }

    /// Notes that a domain has left a processor to the next domain. Calls about one domain must be in the
    /// order of time. Calls about several domains may be in any order, because each domain may have a log
    /// file of its own.
    pub(super) fn pass(&mut self, processor: usize, from: DomainId, to: DomainId, ns: u64, at_ns: u64) {
        let Some(now) = self.now.get_mut(processor) else { return };
        let advance = now.take_advance(from);
        // A row of another file may be about an earlier phase, which says nothing about the present one.
        if now.newest.is_none_or(|(_, newest_ns)| newest_ns <= at_ns) {
            now.newest = Some((to, at_ns));
        }
        // At most one of the two is not zero.
        self.charge(processor, from, ns.saturating_sub(advance));
        self.take_back(processor, from, advance.saturating_sub(ns));
        self.see(processor, from, at_ns);
        self.see(processor, to, at_ns);
    }

    /// Charges phases that have not ended in advance.
    pub(super) fn settle(&mut self, now_ns: u64) {
        for processor in 0..self.now.len() {
            let now = &mut self.now[processor];
            // A stamp of a far future would charge nothing until then, and would outlast every true stamp.
            now.newest.take_if(|(_, at_ns)| *at_ns > now_ns.saturating_add(MAX_AHEAD_NS));
            let Some((domain, began_ns)) = now.newest else { continue };
            let Some(advance_ns) = now.advance_ns.get_mut(domain.index()) else { continue };
            let charged = *advance_ns;
            // Never less than was charged: an advance is taken back by the row that ends the phase, and not
            // here.
            let so_far = now_ns.saturating_sub(began_ns).max(charged);
            *advance_ns = so_far;
            self.charge(processor, domain, so_far - charged);
            self.see(processor, domain, began_ns.saturating_add(so_far));
        }
    }

    /// Forgets which domains run now.
    pub(super) fn forget_now(&mut self) {
        for now in &mut self.now {
            now.newest = None;
            now.advance_ns.fill(0);
        }
    }

    pub(super) fn end_period(&mut self) {
        self.used.end_period();
    }

    fn charge(&mut self, processor: usize, domain: DomainId, ns: u64) {
        if domain.index() < self.domains {
            self.used.add(processor, domain.index(), ns);
        }
    }

    fn take_back(&mut self, processor: usize, domain: DomainId, ns: u64) {
        if domain.index() < self.domains {
            self.used.take_back(processor, domain.index(), ns);
        }
    }

    fn see(&mut self, processor: usize, domain: DomainId, at_ns: u64) {
        if let Some(last) = self.last.get_mut(domain.index())
            && last.is_none_or(|last| last.at_ns <= at_ns)
        {
            *last = Some(LastSeen { processor, at_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const D1: DomainId = DomainId::new(1);
    const D2: DomainId = DomainId::new(2);
    const D3: DomainId = DomainId::new(3);
    const D4: DomainId = DomainId::new(4);
    const D9: DomainId = DomainId::new(9);

    #[test]
    fn log_16_a_domain_that_never_leaves_is_charged_at_every_poll_and_not_twice_at_the_end() {
        let mut service = Service::new(1, 4);
        service.pass(0, D3, D2, 10, 1000);
        service.settle(1500);
        assert_eq!((service.total_ns(D3), service.total_ns(D2)), (10, 500));
        service.settle(1700);
        assert_eq!(service.total_ns(D2), 700);
        service.pass(0, D2, D1, 900, 1900);
        assert_eq!(service.total_ns(D2), 900);
    }

    #[test]
    fn log_16_what_was_charged_in_advance_and_not_used_is_taken_back() {
        let mut service = Service::new(1, 4);
        service.pass(0, IDLE, D2, 1000, 1000);
        service.settle(21_000);
        assert_eq!(service.total_ns(D2), 20_000, "no row says that it has left");
        // It left at 1300, which was not reported; the one that came then has left at 21,500.
        service.pass(0, D2, D3, 300, 1300);
        service.pass(0, D3, IDLE, 20_200, 21_500);
        assert_eq!((service.total_ns(D2), service.total_ns(D3)), (300, 20_200));
        service.settle(22_000);
        let all: u64 = DomainId::all_below(4).map(|domain| service.total_ns(domain)).sum();
        assert_eq!(all, 22_000, "as much as has passed");
    }

    #[test]
    fn log_16_rows_of_one_file_for_each_domain_may_come_in_any_order_between_domains() {
        let mut service = Service::new(1, 4);
        service.pass(0, D3, D2, 10, 100);
        service.settle(150);
        // Domain 3's file first, although 2 left at 200 and 3 at 300.
        service.pass(0, D3, D2, 100, 300);
        service.pass(0, D2, D3, 100, 200);
        service.settle(350);
        assert_eq!((service.total_ns(D2), service.total_ns(D3)), (150, 110));
    }

    #[test]
    fn log_16_what_was_charged_in_advance_is_not_charged_twice_where_the_row_comes_after_those_of_others() {
        let mut service = Service::new(1, 5);
        service.pass(0, D3, D2, 10, 100);
        service.settle(150);
        // 2 left to 3 at 160 and 3 to 4 at 170; the file of 2 was read before that, and that of 3 after it.
        service.pass(0, D3, D4, 10, 170);
        service.settle(180);
        service.pass(0, D2, D3, 60, 160);
        service.settle(190);
        assert_eq!([D2, D3, D4].map(|domain| service.total_ns(domain)), [60, 20, 20]);
    }

    #[test]
    fn log_16_time_while_nothing_is_logged_is_charged_to_no_domain() {
        let mut service = Service::new(1, 4);
        service.pass(0, D3, D2, 10, 1000);
        service.settle(1500);
        service.forget_now();
        service.settle(9000);
        assert_eq!((service.total_ns(D3), service.total_ns(D2)), (10, 500));
        // The phase that began when logging went on.
        service.pass(0, D2, D3, 70, 9100);
        assert_eq!(service.total_ns(D2), 570);
    }

    #[test]
    fn log_16_busy_time_is_what_was_not_idle() {
        let mut service = Service::new(2, 4);
        service.pass(0, D2, IDLE, 300, 300);
        service.pass(0, IDLE, D2, 700, 1000);
        service.end_period();
        assert_eq!((service.busy_ns(0), service.busy_ns(1)), (Some(300), None));
    }

    #[test]
    fn log_16_affinity_is_where_a_domain_ran_last_and_most() {
        let mut service = Service::new(2, 4);
        service.pass(0, D2, D3, 900, 1000);
        service.pass(1, D2, D3, 100, 2000);
        assert_eq!(service.last_seen(D2), Some(LastSeen { processor: 1, at_ns: 2000 }));
        assert_eq!(service.most_run(D2), None, "no period has ended");
        service.end_period();
        assert_eq!(service.most_run(D2), Some(0));
        for _ in 0..3 {
            service.pass(1, D2, D3, 900, 3000);
            service.end_period();
        }
        assert_eq!(service.most_run(D2), Some(1), "old periods fade");
    }

    #[test]
    fn log_11_domains_and_processors_that_do_not_exist_are_ignored() {
        let mut service = Service::new(1, 4);
        service.pass(7, D2, D3, 5, 5);
        service.pass(0, D9, DomainId::new(60_000), u64::MAX, u64::MAX);
        service.settle(0);
        service.end_period();
        assert_eq!(DomainId::all_below(4).map(|domain| service.total_ns(domain)).sum::<u64>(), 0);
    }
}
