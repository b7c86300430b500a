//! The affinity policy (short paper §4; thesis §5.3): each driver is associated with a processor,
//! and clients move to the processor of the driver that they talk to most.
//!
//! | | |
//! |---|---|
//! | a period's decision | N² steps for N domains, and at most N passes over all clients |
//! | moves | one for each client and period at most, and no more than one in the time that it has to dwell |
//! | fairness | none of its own |
//! | several processors | the policy's purpose; on one processor no client moves |
//!
//! For a period's decision, each client looks at every domain. Then each looks once more at every client
//! after each pass in which a client moved. The scheduler decides which client runs next on a processor; the
//! cap bounds what is brought to one.
//!
//! Deviations: the papers say no more than that. Three rules keep the policy from doing harm on a real
//! machine:
//!
//! * **Hysteresis.** A client moves only when its best driver leads the best one on its present
//!   processor by a margin, for some periods in a row, and not again before it has dwelt there.
//! * **A cap.** What the managed domains bring to a processor, by estimate, never passes a cap
//!   through a move. A client that finds no room stays, and asks again in the next period.
//! * **Imbalance.** A processor whose run queue is much longer than the present one's takes no client.
//!
//! ```
//! use mete_policy::{Affinity, Period, Permille, ProcessorId, Role, affinity::Settings};
//!
//! // Domain 0 is a driver on processor 1; domain 1, a client on processor 0, talks to it.
//! let mut policy = Affinity::new(2, 2, Settings { confirm_periods: 2, ..Settings::default() });
//! let (processor_0, processor_1) = (ProcessorId::new(0), ProcessorId::new(1));
//! let period = Period {
//!     roles: &[Role::Driver, Role::Client],
//!     transactions: &[0, 0, 500, 0],
//!     processors: &[Some(processor_1), Some(processor_0)],
//!     demand: &[Permille::new(200), Permille::new(100)],
//!     queue: &[Permille::WHOLE, Permille::WHOLE],
//! };
//! assert!(policy.decide(&period).is_empty(), "one period may be chance");
//! let moves = policy.decide(&period);
//! assert_eq!((moves[0].domain.get(), moves[0].to), (1, processor_1));
//! ```

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::{DomainIndex, Permille, ProcessorId};

/// What a domain is to this policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Neither moved nor followed.
    #[default]
    Bystander,
    /// Serves clients: others move to it, and it stays.
    Driver,
    /// A client, which moves to its drivers.
    Client,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Bystander => "bystander",
            Role::Driver => "driver",
            Role::Client => "client",
        })
    }
}

/// The constants of the policy. The default values suit periods of 100 ms to 1 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// By how much the best driver must lead the best driver on the client's present processor, in
    /// percent of the latter's transactions. 25: five transactions there against four here are not
    /// enough, six are.
    pub margin_percent: u32,
    /// For how many periods in a row the same processor must be the better one. 3: two periods may
    /// be one burst that happens to lie across the border between them.
    pub confirm_periods: u32,
    /// How many periods a client stays after a move, whatever happens. 10: a cold cache costs only
    /// microseconds, so the dwell is not about that cost but about clients that chase one another.
    pub dwell_periods: u32,
    /// The number of transactions a period below which a client has no opinion. 10: below that, margins are
    /// noise.
    pub min_transactions: u64,
    /// What the managed domains together may bring to a processor. 1000: all of it. A client that waits
    /// for its driver does not run while the driver does. So the two fit on one processor even when
    /// they keep it busy, and a lower cap would keep apart exactly those that gain most.
    pub cap: Permille,
    /// By how much the run queue of the new processor may be longer than that of the present one.
    /// 2000 is two tasks.
    pub max_imbalance: Permille,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            margin_percent: 25,
            confirm_periods: 3,
            dwell_periods: 10,
            min_transactions: 10,
            cap: Permille::WHOLE,
            max_imbalance: Permille::new(2000),
        }
    }
}

/// The results of the analysis for one period. All slices are indexed by domain or by processor;
/// entries that are missing at their end read as nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Period<'a> {
    /// What each domain is.
    pub roles: &'a [Role],
    /// Transactions of this period, client by driver: entry `client * domains + driver`.
    pub transactions: &'a [u64],
    /// The processor that each domain ran on for most of the time; `None` for a domain that has not been
    /// seen.
    pub processors: &'a [Option<ProcessorId>],
    /// How much of one processor each domain used.
    pub demand: &'a [Permille],
    /// The mean length of each processor's run queue.
    pub queue: &'a [Permille],
}

/// A proposal: let this domain run on that processor only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The client.
    pub domain: DomainIndex,
    /// The processor where it ran, if that is known.
    pub from: Option<ProcessorId>,
    /// The processor where it is to run.
    pub to: ProcessorId,
    /// The driver that it follows.
    pub driver: DomainIndex,
}

/// The policy's memory of one client.
#[derive(Clone, Copy, Debug, Default)]
struct ClientMemory {
    /// The processor where this policy has put it.
    placed: Option<ProcessorId>,
    /// The processor where it had put it before that, in case the last move is refused.
    placed_before: Option<ProcessorId>,
    /// The processor that was better the last time, and for how many periods in a row.
    wanted: Option<ProcessorId>,
    streak: u32,
    /// The number of periods until it may move again.
    dwell: u32,
    /// The driver that it would follow.
    driver: DomainIndex,
}

/// The policy. See the [module](self).
#[derive(Clone, Debug)]
pub struct Affinity {
    settings: Settings,
    clients: Vec<ClientMemory>,
    /// What managed domains bring to each processor in this period, moves included.
    brought: Vec<Permille>,
    moves: Vec<Move>,
}

impl Affinity {
    /// A policy for that number of domains and processors; at most 65,536 of each are used. All memory is
    /// allocated here.
    pub fn new(domains: usize, processors: usize, settings: Settings) -> Affinity {
        let all = usize::from(u16::MAX) + 1;
        let domains = domains.min(all);
        Affinity {
            settings,
            clients: vec![ClientMemory::default(); domains],
            brought: vec![Permille::ZERO; processors.min(all)],
            moves: Vec::with_capacity(domains),
        }
    }

    /// The constants.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The processor where this policy has put a domain, if it has.
    pub fn placed(&self, domain: DomainIndex) -> Option<ProcessorId> {
        self.clients.get(domain.index())?.placed
    }

    /// One period has passed: answers which domains should move. Does not allocate.
    pub fn decide(&mut self, period: &Period<'_>) -> &[Move] {
        self.moves.clear();
        // What each processor carries comes first: every question for room below compares with it.
        self.weigh_processors(period);
        for domain in 0..self.clients.len() {
            self.form_opinion(period, domain);
        }
        // A client that leaves makes room for another, so ask again as long as a client moves.
        // Each client moves at most once, which bounds the loop.
        while self.move_clients_that_find_room(period) {}
        &self.moves
    }

    /// A proposal was not carried out: the client stands where it stood, and dwells there.
    pub fn refused(&mut self, refused: Move) {
        if let Some(client) = self.clients.get_mut(refused.domain.index())
            && client.placed == Some(refused.to)
        {
            client.placed = client.placed_before;
        }
    }

    fn weigh_processors(&mut self, period: &Period<'_>) {
        self.brought.fill(Permille::ZERO);
        for domain in 0..self.clients.len() {
            if period.role(domain) != Role::Bystander
                && let Some(brought) =
                    self.present(period, domain).and_then(|p| self.brought.get_mut(p.index()))
            {
                *brought = brought.saturating_add(period.demand_of(domain));
            }
        }
    }

    /// A domain's present processor: the one where it was put, else the one where it was seen.
    fn present(&self, period: &Period<'_>, domain: usize) -> Option<ProcessorId> {
        let placed = self.clients.get(domain).and_then(|client| client.placed);
        placed.or_else(|| period.processor_of(domain))
    }

    /// Notes which processor a client would rather be on, and since when.
    fn form_opinion(&mut self, period: &Period<'_>, domain: usize) {
        let best = self.better_driver(period, domain);
        let client = &mut self.clients[domain];
        client.dwell = client.dwell.saturating_sub(1);
        let wanted = best.and_then(|driver| period.processor_of(driver));
        client.streak =
            // A first wish counts as one period. Without a wish the streak says nothing.
            if wanted.is_some() && wanted == client.wanted { client.streak.saturating_add(1) } else { 1 };
        client.wanted = wanted;
        client.driver = DomainIndex::at(best.unwrap_or(0));
    }

    /// The driver that a client talks to most, if there is a reason to be on its processor.
    fn better_driver(&self, period: &Period<'_>, domain: usize) -> Option<usize> {
        if period.role(domain) != Role::Client {
            return None;
        }
        let (best, most) = self.busiest(period, domain, |_| true)?;
        let target = period.processor_of(best).filter(|&p| p.index() < self.brought.len())?;
        // A client that was put there already needs no move.
        if most < self.settings.min_transactions.max(1) || self.clients[domain].placed == Some(target) {
            return None;
        }
        let here = self.present(period, domain);
        // It runs there by chance: putting it there makes it stay, and needs no margin.
        if here == Some(target) {
            return Some(best);
        }
        let rival = self.busiest(period, domain, |driver| period.processor_of(driver) == here);
        self.leads(most, rival.map_or(0, |(_, count)| count)).then_some(best)
    }

    /// The driver with the most transactions among those for which `counts` is true; the first one of equals.
    fn busiest(
        &self,
        period: &Period<'_>,
        client: usize,
        counts: impl Fn(usize) -> bool,
    ) -> Option<(usize, u64)> {
        let drivers =
            (0..self.clients.len()).filter(|&driver| period.role(driver) == Role::Driver && counts(driver));
        let counted =
            drivers.map(|driver| (driver, period.transactions_of(client, driver, self.clients.len())));
        counted.fold(None, |best, next| match best {
            Some((_, most)) if most >= next.1 => best,
            _ => Some(next),
        })
    }

    fn leads(&self, most: u64, rival: u64) -> bool {
        // Both sides times 100, so that no percentage is rounded.
        let needed = u128::from(rival) * (100 + u128::from(self.settings.margin_percent));
        u128::from(most) * 100 > needed
    }

    fn move_clients_that_find_room(&mut self, period: &Period<'_>) -> bool {
        let before = self.moves.len();
        for domain in 0..self.clients.len() {
            if let Some(proposal) = self.possible_move(period, domain) {
                self.carry_out(period, proposal);
            }
        }
        self.moves.len() > before
    }

    fn possible_move(&self, period: &Period<'_>, domain: usize) -> Option<Move> {
        let client = &self.clients[domain];
        let to = client.wanted?;
        let is_due = client.streak >= self.settings.confirm_periods && client.dwell == 0;
        let from = self.present(period, domain);
        // A client that is there already brings nothing new: the move only keeps it there.
        let has_room = from == Some(to) || self.has_room(period, domain, from, to);
        let driver = client.driver;
        (is_due && client.placed != Some(to) && has_room).then_some(Move {
            domain: DomainIndex::at(domain),
            from,
            to,
            driver,
        })
    }

    fn has_room(
        &self,
        period: &Period<'_>,
        domain: usize,
        from: Option<ProcessorId>,
        to: ProcessorId,
    ) -> bool {
        // A processor that the policy does not know is full.
        let brought = self.brought.get(to.index()).copied().unwrap_or(Permille::MAX);
        let fits = brought.saturating_add(period.demand_of(domain)) <= self.settings.cap;
        let here = from.map_or(Permille::ZERO, |from| period.queue_of(from));
        fits && period.queue_of(to) <= here.saturating_add(self.settings.max_imbalance)
    }

    fn carry_out(&mut self, period: &Period<'_>, proposal: Move) {
        let demand = period.demand_of(proposal.domain.index());
        // What moves is counted at once, so that the next client sees the room that is left.
        if let Some(from) = proposal.from.and_then(|from| self.brought.get_mut(from.index())) {
            *from = from.saturating_sub(demand);
        }
        if let Some(to) = self.brought.get_mut(proposal.to.index()) {
            *to = to.saturating_add(demand);
        }
        let client = &mut self.clients[proposal.domain.index()];
        client.placed_before = client.placed.replace(proposal.to);
        client.dwell = self.settings.dwell_periods;
        client.streak = 0;
        // One move per domain and call, and capacity for all domains: this allocates nothing.
        self.moves.push(proposal);
    }
}

impl Period<'_> {
    fn role(&self, domain: usize) -> Role {
        self.roles.get(domain).copied().unwrap_or_default()
    }

    fn processor_of(&self, domain: usize) -> Option<ProcessorId> {
        self.processors.get(domain).copied().flatten()
    }

    fn demand_of(&self, domain: usize) -> Permille {
        self.demand.get(domain).copied().unwrap_or_default()
    }

    fn queue_of(&self, processor: ProcessorId) -> Permille {
        self.queue.get(processor.index()).copied().unwrap_or_default()
    }

    fn transactions_of(&self, client: usize, driver: usize, domains: usize) -> u64 {
        self.transactions.get(client * domains + driver).copied().unwrap_or(0)
    }
}
