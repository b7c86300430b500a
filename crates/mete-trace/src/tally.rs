//! Counts what one processor's file has of a stretch of time (NEW-2).
//!
//! Events that were lost have no time of their own. They count if they may have been in that time: if it is
//! not known that they came before it or after it.

use mete_log::Ticks;

use crate::completeness::Account;
use crate::gap::Gap;

/// The account of a stretch of time, while a file is read.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Bounds included.
    from: Ticks,
    until: Ticks,
    /// Whether times rise throughout the file. If not, a time says nothing about what is beside it.
    is_ordered: bool,
    account: Account,
}

impl Tally {
    pub(crate) fn of_time(
        from: Option<Ticks>,
        until: Option<Ticks>,
        is_ordered: bool,
        account: Account,
    ) -> Tally {
        let (from, until) = (from.unwrap_or_default(), until.unwrap_or(Ticks::MAX));
        Tally { from, until, is_ordered, account }
    }

    /// The time begins here.
    pub(crate) fn count_from(&mut self, from: Option<Ticks>) {
        self.from = from.unwrap_or_default();
    }

    /// The account so far.
    pub(crate) fn account(&self) -> Account {
        self.account
    }

    /// Nothing comes before this serial number.
    pub(crate) fn begin(&mut self, serial: u64) {
        if self.account.records + self.account.lost == 0 {
            (self.account.first_serial, self.account.end_serial) = (serial, serial);
        }
    }

    /// Nothing comes after what was counted.
    pub(crate) fn end(&mut self) {
        self.account.ended = true;
    }

    #[inline]
    pub(crate) fn record(&mut self, serial: u64, time: Ticks) {
        if time < self.from {
            self.begin(serial + 1);
        } else if time > self.until {
            self.account.ended |= self.is_ordered;
        } else {
            self.extend(serial, serial + 1);
            let account = &mut self.account;
            account.first_time = if account.records == 0 { time } else { account.first_time.min(time) };
            account.last_time = account.last_time.max(time);
            account.records += 1;
        }
    }

    /// Counts a gap, and how many of its events were recorded and not written. Says whether they may have been in
    /// the time.
    pub(crate) fn gap(&mut self, gap: &Gap, unwritten: u64) -> bool {
        let end = gap.first_serial + gap.events;
        if self.is_ordered && gap.before.is_some_and(|before| before < self.from) {
            self.begin(end);
            return false;
        }
        if self.is_ordered && gap.after.is_some_and(|after| after > self.until) {
            return false;
        }
        self.extend(gap.first_serial, end);
        self.account.lost += gap.events;
        self.account.unwritten += unwritten;
        true
    }

    fn extend(&mut self, first: u64, end: u64) {
        self.begin(first);
        self.account.end_serial = end;
    }
}
