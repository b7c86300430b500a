//! Exact service-time errors in constant time a decision.

use mete_policy::{ClientId, Nanoseconds};

use super::{QUANTUM_NS, Shares};

/// The extremes of service-time errors over a schedule, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errors {
    /// The lowest error times the sum of shares, in nanoseconds; never above 0.
    pub lowest: i64,
    /// The highest error times the sum of shares, in nanoseconds; never below 0.
    pub highest: i64,
    /// The sum of shares.
    pub total: u64,
}

impl Errors {
    /// The lowest error in time units: how far a client was behind its share.
    #[must_use]
    pub fn lowest_tu(&self) -> f64 {
        self.in_units(self.lowest)
    }

    /// The highest error in time units: how far a client was ahead of its share.
    #[must_use]
    pub fn highest_tu(&self) -> f64 {
        self.in_units(self.highest)
    }

    fn in_units(&self, error: i64) -> f64 {
        error as f64 / (self.total as f64 * QUANTUM_NS as f64)
    }
}

#[derive(Clone, Copy)]
struct Account {
    share: i64,
    received_ns: i64,
}

/// What each client received. All products fit: [`Shares::cycles_ns`] refuses schedules whose length
/// times the sum of shares does not.
pub(super) struct Ledger {
    accounts: Vec<Account>,
    total: i64,
    lowest: i64,
    highest: i64,
}

impl Ledger {
    pub(super) fn new(shares: &Shares) -> Ledger {
        let account = |share: &mete_policy::Share| Account { share: share.get().into(), received_ns: 0 };
        let accounts = shares.as_slice().iter().map(account).collect();
        Ledger { accounts, total: shares.total() as i64, lowest: 0, highest: 0 }
    }

    /// A client runs from `now` on. `false` if there is no such client.
    #[inline]
    pub(super) fn serve(&mut self, client: ClientId, now: Nanoseconds, ran_ns: Nanoseconds) -> bool {
        let Some(account) = self.accounts.get_mut(client as usize) else { return false };
        let before = account.error(self.total, now as i64);
        account.received_ns += ran_ns as i64;
        let after = before + ran_ns as i64 * (self.total - account.share);
        self.lowest = self.lowest.min(before);
        self.highest = self.highest.max(after);
        true
    }

    /// The schedule ends: the extremes, and whether all have exactly their share.
    pub(super) fn close(mut self, now: Nanoseconds) -> (Errors, bool) {
        let mut is_even = true;
        for account in &self.accounts {
            let error = account.error(self.total, now as i64);
            self.lowest = self.lowest.min(error);
            is_even &= error == 0;
        }
        (Errors { lowest: self.lowest, highest: self.highest, total: self.total as u64 }, is_even)
    }
}

impl Account {
    /// W × T − S × t.
    #[inline]
    fn error(&self, total: i64, now: i64) -> i64 {
        self.received_ns * total - self.share * now
    }
}
