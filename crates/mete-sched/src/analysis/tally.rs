//! Everything else that was logged, by name and domain: performance counters, memory, and the events of
//! user-level components.

use mete_log::DomainId;

use super::lengths::{AllLengths, Lengths};
use super::stream::RowUse;
use crate::sources::Meaning;

/// One event's rows in one domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The number of rows.
    pub rows: u64,
    /// The sum of their counters.
    pub sum: u64,
    /// The counter of the newest row. In a file of totals: what this row added to the row that was read
    /// before it.
    pub last: u64,
    /// The stamp of the newest row.
    stamp: u64,
}

/// One event in all domains. Events of the same name are one event, from whichever component they come.
#[derive(Clone, Debug)]
pub struct Tally {
    /// What people call it.
    pub name: String,
    /// What its rows say.
    pub meaning: Meaning,
    by_domain: Vec<Sum>,
    /// How the lengths are spread, if the event is a phase.
    lengths: Option<AllLengths>,
}

impl Tally {
    pub(super) fn new(name: &str, meaning: Meaning, domains: usize) -> Tally {
        let lengths = (meaning == Meaning::Phase).then(|| AllLengths::new(domains));
        Tally { name: name.to_owned(), meaning, by_domain: vec![Sum::default(); domains], lengths }
    }

    /// What was logged in a domain.
    pub fn of(&self, domain: DomainId) -> Sum {
        self.by_domain.get(domain.index()).copied().unwrap_or_default()
    }

    /// How long the phases in a domain took, in ticks of the component's clock; `None` if the event is no
    /// phase.
    pub fn lengths(&self, domain: DomainId) -> Option<Lengths> {
        self.lengths.as_ref().map(|all| all.of(domain))
    }

    /// Adds one row. The newest row of a file of totals stands for several rows. `stamp` says which of the
    /// rows of several processors is the newest.
    pub(super) fn add(&mut self, domain: DomainId, counter: u64, of: RowUse, stamp: u64) {
        if let Some(sum) = self.by_domain.get_mut(domain.index()) {
            sum.rows = sum.rows.saturating_add(of.rows);
            sum.sum = sum.sum.saturating_add(counter.saturating_mul(of.occurrences));
            // `>=`: rows without a stamp have 0, and then the last one read is the newest.
            if stamp >= sum.stamp {
                (sum.last, sum.stamp) = (counter, stamp);
            }
            if let Some(lengths) = &mut self.lengths {
                lengths.add(domain, counter, of.occurrences);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOMAIN: DomainId = DomainId::new(2);
    const ONE: RowUse = RowUse { meaning: Meaning::Memory, occurrences: 1, rows: 1, tally: 0 };

    #[test]
    fn log_16_the_newest_row_of_all_processors_tells_the_present_value() {
        let mut tally = Tally::new("memory", Meaning::Memory, 4);
        for (counter, stamp) in [(100, 10), (300, 30), (200, 20)] {
            tally.add(DOMAIN, counter, ONE, stamp);
        }
        let none = DomainId::new(9);
        tally.add(none, 1, ONE, 40);
        assert_eq!((tally.of(DOMAIN).last, tally.of(DOMAIN).rows, tally.of(none)), (300, 3, Sum::default()));
    }
}
