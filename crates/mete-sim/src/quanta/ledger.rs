//! Exact service-time errors in constant time for each decision.

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
    pub fn lowest_tu(&self) -> f64 {
        self.in_units(self.lowest)
    }

    /// The highest error in time units: how far a client was ahead of its share.
    pub fn highest_tu(&self) -> f64 {
        self.in_units(self.highest)
    }

    /// The extremes of both together.
    fn and(self, other: &Errors) -> Errors {
        let (lowest, highest) = (self.lowest.min(other.lowest), self.highest.max(other.highest));
        Errors { lowest, highest, ..self }
    }

    fn in_units(&self, error: i64) -> f64 {
        error as f64 / (self.total as f64 * QUANTUM_NS.get() as f64)
    }
}

#[derive(Clone, Copy)]
struct Account {
    share: i64,
    received_ns: i64,
    lowest: i64,
    highest: i64,
}

/// What each client received. All products fit into 64 bits: [`Shares::cycles_ns`] refuses a schedule whose
/// length times the sum of shares does not fit.
pub(super) struct Ledger {
    accounts: Vec<Account>,
    total: i64,
}

/// The errors at the end of a schedule.
pub(super) struct Balance {
    /// The extremes of each client.
    pub clients: Vec<Errors>,
    /// The extremes of all clients together.
    pub errors: Errors,
    /// Whether all clients have exactly their shares.
    pub is_even: bool,
}

impl Ledger {
    pub(super) fn new(shares: &Shares) -> Ledger {
        let shares_of_clients = shares.as_slice().iter().map(|share| i64::from(share.get()));
        let accounts =
            shares_of_clients.map(|share| Account { share, received_ns: 0, lowest: 0, highest: 0 });
        let accounts = accounts.collect();
        Ledger { accounts, total: shares.total() as i64 }
    }

    /// A client runs from `now` on. `false` if there is no such client.
    #[inline]
    pub(super) fn serve(&mut self, client: ClientId, now: Nanoseconds, ran_ns: Nanoseconds) -> bool {
        let Some(account) = self.accounts.get_mut(client.index()) else { return false };
        // While a client waits its error falls, so it is lowest just before its turn.
        let before = account.error(self.total, now.get() as i64);
        account.received_ns += ran_ns.get() as i64;
        let after = before + ran_ns.get() as i64 * (self.total - account.share);
        account.lowest = account.lowest.min(before);
        account.highest = account.highest.max(after);
        true
    }

    /// The schedule ends.
    pub(super) fn close(self, now: Nanoseconds) -> Balance {
        let (total, now) = (self.total, now.get() as i64);
        let clients = self.accounts.iter().map(|account| Errors {
            lowest: account.lowest.min(account.error(total, now)),
            highest: account.highest,
            total: total as u64,
        });
        let clients: Vec<Errors> = clients.collect();
        let none = Errors { lowest: 0, highest: 0, total: total as u64 };
        Balance {
            errors: clients.iter().fold(none, |all, client| all.and(client)),
            is_even: self.accounts.iter().all(|account| account.error(total, now) == 0),
            clients,
        }
    }
}

impl Account {
    /// The client's error times the sum of shares: W × T − S × t.
    #[inline]
    fn error(&self, total: i64, now: i64) -> i64 {
        self.received_ns * total - self.share * now
    }
}
