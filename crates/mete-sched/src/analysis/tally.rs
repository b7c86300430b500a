//! What else was logged, by name and domain: performance counters, memory, and the events of
//! user-level components.

use mete_log::DomainId;

use crate::sources::Meaning;

/// One event's rows in one domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Rows.
    pub rows: u64,
    /// The sum of their counters.
    pub sum: u64,
    /// The counter of the newest row.
    pub last: u64,
    stamp: u64,
}

/// One event in all domains. Events of the same name are one, whichever component they come from.
#[derive(Clone, Debug)]
pub struct Tally {
    /// What people call it.
    pub name: String,
    /// What its rows say.
    pub meaning: Meaning,
    by_domain: Vec<Sum>,
}

impl Tally {
    pub(super) fn new(name: &str, meaning: Meaning, domains: usize) -> Tally {
        Tally { name: name.to_owned(), meaning, by_domain: vec![Sum::default(); domains] }
    }

    /// What was logged in a domain.
    pub fn of(&self, domain: DomainId) -> Sum {
        self.by_domain.get(usize::from(domain)).copied().unwrap_or_default()
    }

    /// One row; `stamp` tells which one of several processors' is the newest.
    pub(super) fn add(&mut self, domain: DomainId, counter: u64, occurrences: u64, stamp: u64) {
        if let Some(sum) = self.by_domain.get_mut(usize::from(domain)) {
            sum.rows += 1;
            sum.sum = sum.sum.saturating_add(counter.saturating_mul(occurrences));
            if stamp >= sum.stamp {
                (sum.last, sum.stamp) = (counter, stamp);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_16_the_newest_row_of_all_processors_tells_the_present_value() {
        let mut tally = Tally::new("memory", Meaning::Memory, 4);
        for (counter, stamp) in [(100, 10), (300, 30), (200, 20)] {
            tally.add(2, counter, 1, stamp);
        }
        tally.add(9, 1, 1, 40);
        assert_eq!((tally.of(2).last, tally.of(2).rows, tally.of(9)), (300, 3, Sum::default()));
    }
}
