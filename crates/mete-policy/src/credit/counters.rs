//! The policy's counters, for tables and tests.

use super::account::Clipped;
use super::inference::Evidence;

macro_rules! counters {
    ($($name:ident)*) => {
        /// How often each thing happened; names that end in `_ns` are sums of times.
        #[derive(Clone, Copy, Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: u64,)*
        }

        impl Counters {
            pub(super) fn each(&self, each: &mut dyn FnMut(&'static str, u64)) {
                $(each(stringify!($name), self.$name);)*
            }
        }
    };
}

counters! {
    wake_boosts preemptions
    positive_evidence negative_evidence ambiguous
    partial_boosts partial_boost_hits partial_boost_ns
    revocations refused_by_ratio refused_by_correlation needless_boosts
    portmap_updates ports_missed
    inheritances kept_on_run_queue driver_charged_ns
    credit_cut_ns debt_forgiven_ns
}

impl Counters {
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
