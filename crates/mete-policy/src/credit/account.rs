//! Credit: given by weight, taken by use (TAVS paper, §2.2).
//!
//! Credit is kept in nanoseconds of processor time: 100 credits are a tick's 10 ms. These facts are taken
//! from Xen 3.3's scheduler. A client earns only while it is *active*. It becomes active when a tick finds it
//! running; it ceases to be active when it has saved up more than a slice, and then loses what it has saved.
//! Debt goes no deeper than a slice. If all clients together are in debt, that much more is handed out. Apart
//! from that, a domain earns no more than its active virtual processors can use, and what it leaves goes to
//! the domains after it. Precise accounting (§5.1) changes what is charged, and leaves to ticks which clients
//! are active, as Xen's own does, which came with 4.0.

use alloc::vec;
use alloc::vec::Vec;

use super::priority::Priority;
use super::settings::CreditSettings;
use crate::queue::Queues;
use crate::roster::Roster;
use crate::{ClientId, DomainIndex, Nanoseconds, Share};

#[derive(Clone, Copy, Default)]
struct CreditAccount {
    credit_ns: i64,
    active: bool,
    /// When its use was last charged, while it runs.
    charged_at_ns: Nanoseconds,
    /// How much of its use since it was dispatched has been charged.
    charged_ns: Nanoseconds,
}

/// One domain's sums during an accounting.
#[derive(Clone, Copy)]
struct DomainCredit {
    weight: Share,
    active: u32,
    shares: u64,
    income_ns: Option<Nanoseconds>,
}

/// What is left to hand out, in Xen's single pass.
struct CreditPot {
    total_ns: u128,
    debt_ns: u128,
    weight_total: u128,
    weight_left: u128,
    period_ns: u64,
}

impl CreditPot {
    /// The income of a domain of that weight with that number of active clients.
    fn hand_out(&mut self, weight: u32, active: u32) -> u64 {
        let weight = u128::from(weight);
        self.weight_left = self.weight_left.saturating_sub(weight);
        // Rounded up, as in Xen: no domain with a weight earns nothing.
        let fair = self.total_ns.saturating_mul(weight).div_ceil(self.weight_total.max(1));
        let extra = self.debt_ns.saturating_mul(weight).div_ceil(self.weight_total.max(1));
        // A domain cannot use more than its virtual processors' time, but its part of the debt comes on top.
        let peak = u128::from(self.period_ns) * u128::from(active) + extra;
        if fair > peak && self.weight_left > 0 {
            // Scaled up, because those after it compute their parts by the weight of all.
            let passed_on = (fair - peak).saturating_mul(self.weight_total) / self.weight_left;
            self.total_ns = self.total_ns.saturating_add(passed_on);
        }
        u64::try_from(fair.min(peak)).unwrap_or(u64::MAX)
    }
}

/// What one accounting took from clients that had saved up more than a slice, and forgave to clients that
/// owed more than a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clipped {
    pub(super) credit_ns: u64,
    pub(super) debt_ns: u64,
}

/// All clients' credit.
pub(super) struct Accounts {
    clients: Vec<CreditAccount>,
    domains: Vec<DomainCredit>,
    active: Queues,
    period_ns: Nanoseconds,
    processors: u16,
    limit_ns: i64,
    /// The sum of all active clients' credit after the last accounting.
    balance_ns: i64,
}

impl Accounts {
    pub(super) fn new(clients: u32, domains: u16, processors: u16, settings: &CreditSettings) -> Accounts {
        let ticks = u64::from(settings.accounting_ticks.max(1));
        let domain = DomainCredit { weight: Share::ONE, active: 0, shares: 0, income_ns: None };
        Accounts {
            clients: vec![CreditAccount::default(); clients as usize],
            domains: vec![domain; usize::from(domains)],
            active: Queues::new(1, clients),
            period_ns: settings.tick_ns.saturating_mul(ticks),
            processors,
            limit_ns: i64::try_from(settings.slice_ns.get()).unwrap_or(i64::MAX),
            balance_ns: 0,
        }
    }

    pub(super) fn credit_ns(&self, client: ClientId) -> i64 {
        self.clients.get(client.index()).map_or(0, |account| account.credit_ns)
    }

    pub(super) fn set_weight(&mut self, domain: DomainIndex, weight: Share) {
        if let Some(domain) = self.domains.get_mut(domain.index()) {
            domain.weight = weight;
        }
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        self.deactivate(client);
        if let Some(account) = self.clients.get_mut(client.index()) {
            *account = CreditAccount::default();
        }
    }

    /// A client has begun to run.
    pub(super) fn start(&mut self, client: ClientId, now: Nanoseconds) {
        if let Some(account) = self.clients.get_mut(client.index()) {
            (account.charged_at_ns, account.charged_ns) = (now, Nanoseconds::ZERO);
        }
    }

    /// A tick found a client running; what it ran since the last charge is charged.
    pub(super) fn charge_so_far(&mut self, client: ClientId, now: Nanoseconds) {
        let Some(account) = self.clients.get_mut(client.index()) else { return };
        let since = now.saturating_sub(account.charged_at_ns);
        // Times may go back: the same time must not be charged twice.
        account.charged_at_ns = account.charged_at_ns.max(now);
        account.charged_ns = account.charged_ns.saturating_add(since);
        self.debit(client, since);
    }

    /// A client has stopped after `ran_ns`. What of that is not charged yet is charged. What was charged
    /// too much, because switching takes time or clocks differ, is given back.
    pub(super) fn charge_rest(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        let Some(account) = self.clients.get_mut(client.index()) else { return };
        let charged = core::mem::take(&mut account.charged_ns);
        self.credit(client, charged.saturating_sub(ran_ns));
        self.debit(client, ran_ns.saturating_sub(charged));
    }

    /// Takes credit from a client.
    pub(super) fn debit(&mut self, client: ClientId, used_ns: Nanoseconds) {
        let Some(account) = self.clients.get_mut(client.index()) else { return };
        account.credit_ns = account.credit_ns.saturating_sub_unsigned(used_ns.get());
    }

    /// A tick found a client running: it earns from now on.
    pub(super) fn activate(&mut self, client: ClientId) {
        let Some(account) = self.clients.get_mut(client.index()) else { return };
        if !core::mem::replace(&mut account.active, true) {
            self.active.push_back(0, client);
        }
    }

    pub(super) fn credit(&mut self, client: ClientId, given_ns: Nanoseconds) {
        if let Some(account) = self.clients.get_mut(client.index()) {
            account.credit_ns = account.credit_ns.saturating_add_unsigned(given_ns.get());
        }
    }

    /// Hands out a period's credit, reports each active client's new priority, and answers what was clipped.
    pub(super) fn settle(&mut self, roster: &Roster, mut each: impl FnMut(ClientId, Priority)) -> Clipped {
        let mut pot = self.pot(roster);
        let mut clipped = Clipped::default();
        let mut balance_ns = 0i64;
        let mut at = self.active.front(0);
        while let Some(client) = at {
            // Before `clip`, which may take this client out of the list.
            at = self.active.next(client);
            let income_ns = self.income(client, roster, &mut pot);
            self.credit(client, Nanoseconds::new(income_ns));
            each(client, self.clip(client, &mut clipped));
            balance_ns = balance_ns.saturating_add(self.credit_ns(client));
        }
        self.balance_ns = balance_ns;
        clipped
    }

    /// Sums up the weights and the members of all domains that have active clients.
    fn pot(&mut self, roster: &Roster) -> CreditPot {
        for domain in &mut self.domains {
            (domain.active, domain.shares, domain.income_ns) = (0, 0, None);
        }
        let mut weights = 0u128;
        let mut at = self.active.front(0);
        while let Some(client) = at {
            weights += u128::from(self.join(client, roster));
            at = self.active.next(client);
        }
        let income = u128::from(self.period_ns) * u128::from(self.processors);
        // If all together are in debt, that much more is handed out (Xen).
        let debt_ns = u128::from(self.balance_ns.min(0).unsigned_abs());
        CreditPot {
            total_ns: income + debt_ns,
            debt_ns,
            weight_total: weights,
            weight_left: weights,
            period_ns: self.period_ns.get(),
        }
    }

    /// Counts a client into its domain, and answers the weight that this adds to the whole.
    fn join(&mut self, client: ClientId, roster: &Roster) -> u32 {
        let share = roster.share(client).get();
        match self.domains.get_mut(roster.domain(client).index()) {
            Some(domain) if roster.domain(client) != DomainIndex::ROOT => {
                domain.active += 1;
                domain.shares += u64::from(share);
                // A domain's weight counts once, with its first active client.
                if domain.active == 1 { domain.weight.get() } else { 0 }
            }
            _ => share,
        }
    }

    /// A client's part of its domain's income; one in the root is a domain by itself.
    fn income(&mut self, client: ClientId, roster: &Roster, pot: &mut CreditPot) -> u64 {
        let share = roster.share(client).get();
        match self.domains.get_mut(roster.domain(client).index()) {
            Some(domain) if roster.domain(client) != DomainIndex::ROOT => {
                let (weight, active) = (domain.weight.get(), domain.active);
                // Once for each accounting, at its first client: the pot pays each domain once.
                let income =
                    *domain.income_ns.get_or_insert_with(|| Nanoseconds::new(pot.hand_out(weight, active)));
                let part = u128::from(income) * u128::from(share);
                u64::try_from(part.div_ceil(u128::from(domain.shares.max(1)))).unwrap_or(u64::MAX)
            }
            _ => pot.hand_out(share, 1),
        }
    }

    /// Keeps a client's credit within a slice either way, and answers the priority that the credit gives.
    fn clip(&mut self, client: ClientId, clipped: &mut Clipped) -> Priority {
        let Some(account) = self.clients.get_mut(client.index()) else { return Priority::Under };
        if account.credit_ns < 0 {
            let kept_ns = account.credit_ns.max(-self.limit_ns);
            clipped.debt_ns = clipped.debt_ns.saturating_add(kept_ns.abs_diff(account.credit_ns));
            account.credit_ns = kept_ns;
            return Priority::Over;
        }
        if account.credit_ns > self.limit_ns {
            // Xen's cut: it loses everything, not only what is above a slice, and earns again when it runs.
            let lost_ns = core::mem::take(&mut account.credit_ns).unsigned_abs();
            clipped.credit_ns = clipped.credit_ns.saturating_add(lost_ns);
            self.deactivate(client);
        }
        Priority::Under
    }

    fn deactivate(&mut self, client: ClientId) {
        if let Some(account) = self.clients.get_mut(client.index())
            && core::mem::take(&mut account.active)
        {
            self.active.remove(0, client);
        }
    }
}
