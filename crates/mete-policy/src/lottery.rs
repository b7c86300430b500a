//! Lottery scheduling: each decision draws a ticket, and its holder runs (Waldspurger and Weihl,
//! *Lottery Scheduling: Flexible Proportional-Share Resource Management*, OSDI 1994).
//!
//! | | |
//! |---|---|
//! | selection, insertion | O(log N) steps in a tree of partial ticket sums (§4.2) |
//! | fairness | in the mean; nothing is promised of one decision |
//! | several processors | one lottery serves all; the tickets of clients that run elsewhere are not in it |
//!
//! Of n decisions, a client with the part p of all tickets wins n × p in the mean, with a standard deviation
//! of √(n p (1 − p)) (§2.2).
//!
//! A client has as many tickets as its share says. A client that uses only the fraction f of its quantum
//! holds 1/f times as many until it is next chosen, so that its processor time stays in proportion
//! (§3.4, compensation tickets). Tickets are counted in sixteenths, so that a fraction of a ticket is
//! worth something, too. A fraction f below 1/256 counts as 1/256: the source has no such limit, but
//! with it no sum can overflow. A client that blocks without having run at all gets that much.
//!
//! The generator is the source's (appendix A): Park and Miller's, S' = 16807 S mod (2³¹ − 1). A drawing joins
//! two of its numbers into one of 62 bits, because shares may add up to more than 2³¹, and scales that to the
//! number of tickets. The seed is [`Setup::seed`]: the same seed and calls give the same schedule.
//!
//! There are no currencies of tickets, and tickets are not lent (§3.3, §3.1): domains do not count.

use alloc::vec;
use alloc::vec::Vec;

use crate::roster::{ClientState, Roster};
use crate::{ClientId, Decision, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// One ticket, in the units that are drawn from.
const TICKET: u64 = 16;
/// The most by which compensation multiplies a client's tickets.
const MOST_COMPENSATION: u64 = 256;

/// The lottery policy.
pub struct Lottery {
    roster: Roster,
    tickets: TicketSums,
    /// The number that each client's tickets count for while it is compensated; 0 while it is not.
    compensated: Vec<u64>,
    generator: ParkMiller,
    quantum_ns: Nanoseconds,
}

impl Lottery {
    /// A policy without clients.
    pub fn new(setup: &Setup) -> Lottery {
        Lottery {
            roster: Roster::new(setup),
            tickets: TicketSums::new(setup.clients),
            compensated: vec![0; setup.clients as usize],
            generator: ParkMiller::new(setup.seed),
            quantum_ns: setup.quantum_ns.max(Nanoseconds::new(1)),
        }
    }

    fn enter(&mut self, client: ClientId) {
        let plain = u64::from(self.roster.share(client).get()) * TICKET;
        // Compensation never takes tickets away: 1/f is at least 1 (§3.4).
        self.tickets.set(client, plain.max(self.compensated[client.index()]));
    }

    /// The tickets of a client that ran for `ran_ns` of its quantum; 0 where it used all of it.
    fn compensation(&self, client: ClientId, ran_ns: Nanoseconds) -> u64 {
        if ran_ns >= self.quantum_ns {
            return 0;
        }
        let plain = u128::from(self.roster.share(client).get()) * u128::from(TICKET);
        // A client that did not run at all counts as one that ran 1 ns: the limit below applies to both.
        let ran_ns = u128::from(ran_ns.get().max(1));
        // Rounded to the nearest sixteenth of a ticket.
        let inflated = (plain * u128::from(self.quantum_ns) + ran_ns / 2) / ran_ns;
        // At most 2²⁰ × 16 × 256 = 2³², so all of 2³² clients' tickets fit a u64.
        u64::try_from(inflated.min(plain * u128::from(MOST_COMPENSATION) - 1)).unwrap_or(0)
    }
}

impl Policy for Lottery {
    fn name(&self) -> &'static str {
        "lottery"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.compensated[client.index()] = 0;
        }
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        if self.roster.remove(client) == ClientState::Ready {
            self.tickets.set(client, 0);
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        let state = self.roster.set_share(client, share);
        if state != ClientState::Absent {
            // A compensation belongs to the tickets that it was computed from.
            self.compensated[client.index()] = 0;
        }
        if state == ClientState::Ready {
            self.enter(client);
        }
    }

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            self.enter(client);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        if self.tickets.total() == 0 {
            return None;
        }
        let winner = self.tickets.holder(self.generator.below(self.tickets.total()));
        // The winner's tickets are not in the lottery while it runs; `ran` puts them back.
        self.tickets.set(winner, 0);
        self.roster.run(winner);
        Some(Decision::by_share(winner, self.quantum_ns))
    }

    /// No client displaces another one.
    fn keeps(&self, _processor: ProcessorId) -> bool {
        true
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        let Some(next) = self.roster.stop(client, stop) else { return };
        // A decision that was given back has used nothing of the client's compensation.
        if stop != Stop::Preempted || !ran_ns.is_zero() {
            self.compensated[client.index()] = self.compensation(client, ran_ns);
        }
        if next == ClientState::Ready {
            self.enter(client);
        }
    }
}

/// A complete binary tree whose leaves are the clients' tickets and whose nodes are sums of two.
struct TicketSums {
    /// The root is 1, the children of n are 2n and 2n + 1, the leaves are the last half.
    nodes: Vec<u64>,
}

impl TicketSums {
    fn new(clients: u32) -> TicketSums {
        TicketSums { nodes: vec![0; 2 * (clients.max(1) as usize).next_power_of_two()] }
    }

    fn total(&self) -> u64 {
        self.nodes[1]
    }

    /// Sets a client's tickets; the client is one of those that the tree was made for.
    fn set(&mut self, client: ClientId, tickets: u64) {
        // The client is below the number of leaves, which is rounded up to a power of two.
        let mut node = self.nodes.len() / 2 + client.index();
        let (before, after) = (self.nodes[node], tickets);
        while node > 0 {
            // Every sum on the way to the root holds `before`, so the subtraction cannot wrap.
            self.nodes[node] = self.nodes[node] - before + after;
            node /= 2;
        }
    }

    /// The client that holds the ticket of this number, which is below the total.
    fn holder(&self, mut ticket: u64) -> ClientId {
        let leaves = self.nodes.len() / 2;
        let mut node = 1;
        while node < leaves {
            node *= 2;
            // Down to the child whose tickets hold the number; those of the left child come first (§4.2).
            let left = self.nodes[node];
            if ticket >= left {
                ticket -= left;
                node += 1;
            }
        }
        ClientId::at(node - leaves)
    }
}

/// Park and Miller's generator (the source's appendix A).
struct ParkMiller {
    /// 1 to 2³¹ − 2.
    state: u64,
}

impl ParkMiller {
    const MODULUS: u64 = (1 << 31) - 1;
    const FACTOR: u64 = 16807;

    fn new(seed: u64) -> ParkMiller {
        // Never zero, which would stay zero.
        ParkMiller { state: 1 + seed % (Self::MODULUS - 1) }
    }

    /// The next number less 1: 0 to 2³¹ − 3.
    fn next(&mut self) -> u64 {
        // The product is below 2³¹ × 2¹⁵, so it fits 64 bits.
        self.state = self.state * Self::FACTOR % Self::MODULUS;
        self.state - 1
    }

    /// A number below `bound`; a bias of at most `bound` / 2⁶² remains.
    fn below(&mut self, bound: u64) -> u64 {
        const STEPS: u64 = ParkMiller::MODULUS - 1;
        let (high, low) = (self.next(), self.next());
        // (high × STEPS + low) × bound / STEPS². Words of 64 bits suffice for small bounds, and divide
        // faster.
        if bound <= u64::from(u32::MAX) {
            return (high * bound + low * bound / STEPS) / STEPS;
        }
        let scaled = u128::from(high * STEPS + low) * u128::from(bound) / u128::from(STEPS * STEPS);
        u64::try_from(scaled).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check that Park and Miller give for their generator (CACM 31(10), 1988, §3).
    #[test]
    fn vtrr_3_lottery_draws_by_park_and_miller_s_generator() {
        let mut generator = ParkMiller::new(0);
        for _ in 0..9_999 {
            generator.next();
        }
        assert_eq!(generator.next() + 1, 1_043_618_065);
    }

    #[test]
    fn vtrr_3_lottery_finds_the_holder_of_every_ticket() {
        let tickets = [3, 0, 2, 5, 1];
        let mut sums = TicketSums::new(5);
        for (client, &count) in (0..).zip(&tickets) {
            sums.set(ClientId::new(client), count);
        }
        let holders: Vec<_> = (0..sums.total()).map(|ticket| sums.holder(ticket).get()).collect();
        assert_eq!(holders, [0, 0, 0, 2, 2, 3, 3, 3, 3, 3, 4]);
    }

    #[test]
    fn vtrr_3_lottery_draws_the_same_in_words_of_either_length() {
        const STEPS: u128 = ParkMiller::MODULUS as u128 - 1;
        for bound in [1, 2, 1000, u64::from(u32::MAX), u64::from(u32::MAX) + 1] {
            let (mut one, mut other) = (ParkMiller::new(5), ParkMiller::new(5));
            for _ in 0..1_000 {
                let drawn = u128::from(other.next()) * STEPS + u128::from(other.next());
                assert_eq!(u128::from(one.below(bound)), drawn * u128::from(bound) / (STEPS * STEPS));
            }
        }
    }

    #[test]
    fn vtrr_3_lottery_draws_the_first_and_the_last_of_the_largest_number_of_tickets() {
        let mut generator = ParkMiller::new(9);
        let drawn: Vec<_> = (0..10_000).map(|_| generator.below(u64::MAX)).collect();
        let part = u64::MAX / 1_000;
        assert!(
            drawn.iter().any(|&ticket| ticket < part) && drawn.iter().any(|&ticket| ticket > u64::MAX - part)
        );
    }
}
