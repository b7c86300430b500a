//! One policy's schedule of five clients, quantum by quantum.

use mete_measure::Reason;
use mete_policy::{ClientId, Nanoseconds, Share, by_name};
use mete_sim::quanta::{Outcome, QUANTUM_NS, Shares, Turn, watch};

/// The paper's five clients.
pub(super) const SHARES: [u32; 5] = [1, 2, 3, 4, 5];
/// The quanta of a scheduling cycle: one for each share.
pub(super) const CYCLE: usize = (SHARES[0] + SHARES[1] + SHARES[2] + SHARES[3] + SHARES[4]) as usize;
/// The number of scheduling cycles that are simulated, which take three seconds.
const CYCLES: u32 = 20;

/// One policy's schedule.
pub(crate) struct WatchedSchedule {
    pub policy: &'static str,
    pub turns: Vec<Turn>,
    pub outcome: Outcome,
}

impl WatchedSchedule {
    /// Simulates this policy's schedule.
    pub(super) fn of(policy: &'static str) -> Result<WatchedSchedule, Reason> {
        let entry = by_name(policy).ok_or_else(|| Reason::new("there is no such policy"))?;
        let shares = SHARES.iter().filter_map(|&share| Share::new(share)).collect();
        let shares = Shares::new(shares).map_err(Reason::from_error)?;
        let mut turns = Vec::new();
        let mut policy = (entry.make)(&shares.setup(1));
        let outcome =
            watch(&mut policy, &shares, CYCLES, |turn| turns.push(turn)).map_err(Reason::from_error)?;
        Ok(WatchedSchedule { policy: entry.name, turns, outcome })
    }

    /// A client's turns. Turns that follow each other at once are joined.
    pub(super) fn stretches(&self, client: usize) -> Vec<(Nanoseconds, Nanoseconds)> {
        let mut stretches: Vec<(Nanoseconds, Nanoseconds)> = Vec::new();
        for turn in self.turns.iter().filter(|turn| turn.client.index() == client) {
            let end = turn.from_ns + turn.ran_ns;
            match stretches.last_mut() {
                Some(last) if last.1 == turn.from_ns => last.1 = end,
                _ => stretches.push((turn.from_ns, end)),
            }
        }
        stretches
    }

    /// The times that a client waited from one turn to the next.
    pub(super) fn waits_ns(&self, client: usize) -> Vec<Nanoseconds> {
        self.stretches(client).windows(2).map(|pair| pair[1].0 - pair[0].1).collect()
    }

    /// The longest time that a client waited.
    pub(super) fn longest_wait_ns(&self, client: usize) -> Nanoseconds {
        self.waits_ns(client).into_iter().max().unwrap_or_default()
    }

    /// The processor time that a client has had.
    pub(super) fn received_ns(&self, client: usize) -> Nanoseconds {
        self.stretches(client).into_iter().map(|(from, to)| to - from).sum()
    }

    /// The number of quanta after which the order of clients repeats; `None` if it does not within half of
    /// the time.
    pub(super) fn period(&self) -> Option<usize> {
        let quanta: Vec<ClientId> = self.turns.iter().flat_map(quanta).collect();
        // A period of more than half of the schedule could not be seen to repeat.
        (1..=quanta.len() / 2)
            .find(|period| quanta.iter().zip(&quanta[*period..]).all(|(now, then)| now == then))
    }
}

fn quanta(turn: &Turn) -> impl Iterator<Item = ClientId> {
    std::iter::repeat_n(turn.client, (turn.ran_ns / QUANTUM_NS) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(clients: &[u32]) -> WatchedSchedule {
        let turn = |(nth, &client): (usize, &u32)| Turn {
            client: ClientId::new(client),
            from_ns: nth as u64 * QUANTUM_NS,
            ran_ns: QUANTUM_NS,
        };
        let turns = clients.iter().enumerate().map(turn).collect();
        let shares = Shares::new(vec![Share::ONE]).unwrap();
        let outcome =
            watch(&mut (by_name("rr").unwrap().make)(&shares.setup(0)), &shares, 1, |_| {}).unwrap();
        WatchedSchedule { policy: "test", turns, outcome }
    }

    #[test]
    fn vtrr_5_an_order_that_repeats_has_its_period_and_one_that_does_not_has_none() {
        assert_eq!(schedule(&[0, 0, 1, 0, 0, 1]).period(), Some(3));
        assert_eq!(schedule(&[0, 0, 1, 1, 0, 1]).period(), None);
    }

    #[test]
    fn vtrr_5_turns_behind_one_another_are_one_stretch() {
        let seen = schedule(&[0, 0, 1, 0]);
        assert_eq!(
            seen.stretches(0),
            [(Nanoseconds::ZERO, 2 * QUANTUM_NS), (3 * QUANTUM_NS, 4 * QUANTUM_NS)]
        );
        assert_eq!((seen.longest_wait_ns(0), seen.received_ns(0)), (QUANTUM_NS, 3 * QUANTUM_NS));
    }
}
