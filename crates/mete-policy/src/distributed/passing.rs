//! A domain leaves its turn to others where the members that are due run elsewhere.
//!
//! A domain may be due on several processors at once, and have fewer members than there are processors, or
//! hardly more. Then all of them would run at the same time whatever their shares, and have the same. So a
//! processor on which none of its due members waits passes the domain over, as long as those that run on
//! other processors can use what it is due. Whether they can is seen by its account: if it lags behind by
//! more than they are about to use, they cannot, and others of its members run as well. The domain's own
//! share comes before the shares inside it.

use super::{DistributedVtrr, Member, ROOT};
use crate::{DomainIndex, Nanoseconds, ProcessorId};

/// How many quanta of its members a domain is passed over for, by how often that was done before the same
/// decision.
pub(super) const PASSED_OVER: [u64; 6] = [1, 1, 4, 4, 16, 16];

/// A domain lags behind when it is due this part of a quantum more than its members are about to use. With
/// less of it, a domain loses none of its own share; with more, shares inside it are closer.
pub(super) const LAG: u64 = 4;

/// What came of passing over a domain.
pub(super) enum Pass {
    /// It lags behind, so others of its members run, too.
    Lags,
    Passed,
    /// No other domain waits here.
    Alone,
}

impl DistributedVtrr {
    /// A domain, or the one above it, leaves its turn here to others, if members of it that are due some
    /// quanta run on other processors, and can use what it is due as well, in time. If they cannot, it lags
    /// behind. The more often domains were passed over before this decision, the more such members have to be
    /// due.
    pub(super) fn pass(&mut self, processor: ProcessorId, domain: DomainIndex, tries: usize) -> Pass {
        let Some(&quanta) = PASSED_OVER.get(tries) else { return Pass::Lags };
        let runs = self.others(processor).any(|other| self.has_to_go_on(other, domain, quanta));
        if domain == ROOT || !runs {
            return Pass::Lags;
        }
        let mut member = self.local(processor, domain);
        while let Some(above) = self.above(member, processor).filter(|_| self.is_alone(member, processor)) {
            member = above;
        }
        if self.lags(member, processor) {
            return Pass::Lags;
        }
        if self.is_alone(member, processor) {
            let others_may_wait = self.domains[ROOT.index()].members > 1 && tries <= 1;
            return if others_may_wait { Pass::Alone } else { Pass::Lags };
        }
        let number = self.queue_number(processor, self.home(member));
        self.stand_behind(member, number, self.queues[number].waiting());
        Pass::Passed
    }

    /// Whether no other member of its queue waits.
    fn is_alone(&self, member: Member, processor: ProcessorId) -> bool {
        let queue = &self.queues[self.queue_number(processor, self.home(member))];
        queue.lines.iter().all(|line| line.is_empty() || line.is_only(member))
    }

    /// Whether a domain is due more than the quanta of its members that run on other processors, and a part
    /// of one.
    fn lags(&self, member: Member, processor: ProcessorId) -> bool {
        let domain = self.domain_of(member).unwrap_or(ROOT);
        let run = self.others(processor).filter(|&other| self.running_in(other, domain).is_some()).count();
        let account = &self.accounts[self.account_number(member)];
        let quantum_ns = self.quantum_ns.get();
        let most = Nanoseconds::new(quantum_ns.saturating_mul(run as u64).saturating_add(quantum_ns / LAG));
        let then = account.used.plus(account.virtually(most));
        then.is_before(self.domains[self.home(member).index()].limit)
    }
}
