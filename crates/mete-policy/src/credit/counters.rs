//! The policy's counters, for tables and tests.

use super::account::Clipped;
use super::inference::Evidence;

/// How often each thing happened; names that end in `_ns` are sums of times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) wake_boosts: u64,
    pub(super) preemptions: u64,
    pub(super) positive_evidence: u64,
    pub(super) negative_evidence: u64,
    pub(super) ambiguous: u64,
    pub(super) partial_boosts: u64,
    pub(super) partial_boost_hits: u64,
    pub(super) partial_boost_ns: u64,
    pub(super) revocations: u64,
    pub(super) refused_by_ratio: u64,
    pub(super) refused_by_correlation: u64,
    pub(super) needless_boosts: u64,
    pub(super) portmap_updates: u64,
    pub(super) ports_missed: u64,
    pub(super) inheritances: u64,
    pub(super) kept_on_run_queue: u64,
    pub(super) driver_charged_ns: u64,
    pub(super) credit_cut_ns: u64,
    pub(super) debt_forgiven_ns: u64,
}

impl Counters {
    pub(super) fn each(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("wake_boosts", self.wake_boosts);
        each("preemptions", self.preemptions);
        each("positive_evidence", self.positive_evidence);
        each("negative_evidence", self.negative_evidence);
        each("ambiguous", self.ambiguous);
        each("partial_boosts", self.partial_boosts);
        each("partial_boost_hits", self.partial_boost_hits);
        each("partial_boost_ns", self.partial_boost_ns);
        each("revocations", self.revocations);
        each("refused_by_ratio", self.refused_by_ratio);
        each("refused_by_correlation", self.refused_by_correlation);
        each("needless_boosts", self.needless_boosts);
        each("portmap_updates", self.portmap_updates);
        each("ports_missed", self.ports_missed);
        each("inheritances", self.inheritances);
        each("kept_on_run_queue", self.kept_on_run_queue);
        each("driver_charged_ns", self.driver_charged_ns);
        each("credit_cut_ns", self.credit_cut_ns);
        each("debt_forgiven_ns", self.debt_forgiven_ns);
    }

    pub(super) fn clipped(&mut self, clipped: Clipped) {
        self.credit_cut_ns = self.credit_cut_ns.saturating_add(clipped.credit_ns);
        self.debt_forgiven_ns = self.debt_forgiven_ns.saturating_add(clipped.debt_ns);
    }

    pub(super) fn count(&mut self, evidence: Evidence) {
        match evidence {
            Evidence::Positive => self.positive_evidence += 1,
            Evidence::Negative => self.negative_evidence += 1,
            Evidence::Ambiguous => self.ambiguous += 1,
        }
    }
}
