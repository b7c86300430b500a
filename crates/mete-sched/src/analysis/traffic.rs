//! Which domain deals with which: IPC by the kernel's rows, and transactions by the drivers' own rows. The
//! client-to-driver transaction matrix is made from both (thesis §5.3: two counter vectors for each driver).

use mete_log::DomainId;
use mete_policy::Role;

use super::matrix::{Counts, Matrix};
use crate::domains::user_domains;

/// All dealings between domains. See the [module](self).
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Wake-ups, sender by receiver, as logged on the sender's side.
    sent: Counts,
    /// Wake-ups, receiver by sender, as logged on the receiver's side.
    received: Counts,
    /// Transactions that drivers report, driver by client.
    reported: Counts,
    /// Transactions of the last period, client by driver.
    transactions: Matrix,
    domains: usize,
}

impl Traffic {
    pub(super) fn new(domains: usize) -> Traffic {
        let counts = Counts::new(domains, domains);
        let transactions = Matrix::new(domains, domains);
        Traffic { sent: counts.clone(), received: counts.clone(), reported: counts, transactions, domains }
    }

    /// Wake-ups, sender by receiver, as logged on the sender's side.
    pub fn sent(&self) -> &Counts {
        &self.sent
    }

    /// Wake-ups, receiver by sender, as logged on the receiver's side.
    pub fn received(&self) -> &Counts {
        &self.received
    }

    /// Transactions that drivers report, driver by client.
    pub fn reported(&self) -> &Counts {
        &self.reported
    }

    /// Transactions of the last period, client by driver. What a driver reports itself takes precedence over
    /// what the kernel saw of it, because a busy driver takes requests without being woken.
    pub fn transactions(&self) -> &Matrix {
        &self.transactions
    }

    /// Transactions between a client and a driver since the beginning, found in the same way.
    pub fn total_transactions(&self, client: DomainId, driver: DomainId) -> u64 {
        self.dealings(Counts::total, client, driver)
    }

    /// Whether a client has recently dealt with a driver.
    pub fn deals_with(&self, client: DomainId, driver: DomainId) -> bool {
        self.dealings(Counts::recent, client, driver) > 0
    }

    /// Whether a domain has reported transactions of others, and so is a driver.
    pub fn is_driver(&self, domain: DomainId) -> bool {
        self.reported.total().row(domain.index()).iter().any(|&count| count > 0)
    }

    /// How much two domains have recently dealt with each other, in either direction.
    pub fn weight(&self, one: DomainId, other: DomainId) -> u64 {
        // The two sides of a wake-up are one dealing, so the larger one counts; either may be switched off.
        let woken =
            recent_both_ways(&self.sent, one, other).max(recent_both_ways(&self.received, one, other));
        woken.saturating_add(recent_both_ways(&self.reported, one, other))
    }

    // A number out of range changes nothing: a row may have no correspondent, or be garbled.
    pub(super) fn send(&mut self, from: DomainId, to: DomainId, count: u64) {
        self.sent.add(from.index(), to.index(), count);
    }

    pub(super) fn receive(&mut self, at: DomainId, from: DomainId, count: u64) {
        self.received.add(at.index(), from.index(), count);
    }

    pub(super) fn report(&mut self, driver: DomainId, client: DomainId, count: u64) {
        self.reported.add(driver.index(), client.index(), count);
    }

    pub(super) fn end_period(&mut self, roles: &[Role]) {
        for counts in [&mut self.sent, &mut self.received, &mut self.reported] {
            counts.end_period();
        }
        for client in user_domains(self.domains) {
            for driver in user_domains(self.domains) {
                // A driver is no client of its own, or what it does inside would count as transactions.
                let is_driver = roles.get(driver.index()) == Some(&Role::Driver) && client != driver;
                let count = if is_driver { self.dealings(Counts::period, client, driver) } else { 0 };
                self.transactions.set(client.index(), driver.index(), count);
            }
        }
    }

    fn dealings(&self, of: impl Fn(&Counts) -> &Matrix, client: DomainId, driver: DomainId) -> u64 {
        let is_reported = self.is_driver(driver);
        let (client, driver) = (client.index(), driver.index());
        if is_reported {
            return of(&self.reported).get(driver, client);
        }
        // A request wakes the driver, an answer wakes the client. A wake-up may be missing where the other
        // side was awake, so the larger number counts the round trips.
        let requests = of(&self.sent).get(client, driver).max(of(&self.received).get(driver, client));
        let answers = of(&self.sent).get(driver, client).max(of(&self.received).get(client, driver));
        requests.max(answers)
    }
}

fn recent_both_ways(counts: &Counts, one: DomainId, other: DomainId) -> u64 {
    let (one, other) = (one.index(), other.index());
    counts.recent().get(one, other).saturating_add(counts.recent().get(other, one))
}

#[cfg(test)]
mod tests {
    use mete_log::NO_DOMAIN;

    use super::*;

    const D2: DomainId = DomainId::new(2);
    const D3: DomainId = DomainId::new(3);
    const D4: DomainId = DomainId::new(4);

    const ROLES: [Role; 5] = [Role::Bystander, Role::Bystander, Role::Driver, Role::Client, Role::Client];

    #[test]
    fn log_16_the_matrix_counts_round_trips_by_ipc_until_the_driver_reports_them_itself() {
        let mut traffic = Traffic::new(5);
        traffic.send(D3, D2, 40);
        traffic.receive(D2, D3, 40);
        traffic.send(D2, D3, 60);
        traffic.end_period(&ROLES);
        assert_eq!(traffic.transactions().row(3), [0, 0, 60, 0, 0]);
        traffic.send(D3, D2, 40);
        traffic.report(D2, D3, 75);
        traffic.report(D2, D4, 5);
        traffic.end_period(&ROLES);
        assert_eq!((traffic.transactions().get(3, 2), traffic.transactions().get(4, 2)), (75, 5));
        assert!(traffic.is_driver(D2) && !traffic.is_driver(D3));
    }

    #[test]
    fn log_11_correspondents_that_do_not_exist_are_ignored() {
        let mut traffic = Traffic::new(3);
        traffic.send(D2, NO_DOMAIN, 1);
        traffic.receive(DomainId::new(900), D2, 1);
        traffic.report(D2, NO_DOMAIN, 1);
        traffic.end_period(&ROLES);
        assert!(traffic.sent().total().cells().iter().all(|&count| count == 0));
        assert!(!traffic.is_driver(D2));
    }
}
