//! What is known of a client outside the kernel.

use mete_kernel::Weight;
use mete_policy::{ClientId, DomainIndex, Nanoseconds, Share};

/// For so long a client is given back that the policy chooses for processors on which it may not run. Turns of policies that deal in
/// cycles are further apart than their quanta.
const LONG_BARRED: Nanoseconds = Nanoseconds::from_secs(1);

/// A client, as the policy knows it and as the kernel's side told last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    /// Which client of this number it is.
    pub joined: u32,
    pub generation: u32,
    pub domain: DomainIndex,
    pub weight: u32,
    /// What the policy was told last.
    pub share: Share,
    /// The processors that it may run on, a bit each.
    pub allowed: u64,
    /// Whether it wants a processor. The policy may take a client for ready that does not: one that ran by
    /// turn and blocked, or one that runs without its having been asked. It is told when it chooses the client.
    pub can_run: bool,
    /// Whether the policy takes it for blocked.
    pub is_away: bool,
    /// Whether the policy may choose it: it waits, and is neither chosen nor put aside.
    pub is_ready: bool,
    /// What it has used, and what of that the policy was told.
    pub used: Nanoseconds,
    pub told: Nanoseconds,
    /// The slice that the policy gave it last.
    pub slice: Nanoseconds,
    /// The processor that it had last, if the policy had chosen it for that one.
    pub processor: Option<usize>,
    /// When the policy first chose it for a processor on which it may not run, since it ran last.
    pub barred_since: Option<Nanoseconds>,
    /// What it had used is not known: another decider was told.
    pub is_found: bool,
}

impl Client {
    /// What it has used of which the policy was not told; the policy is told now.
    pub fn charge(&mut self) -> Nanoseconds {
        let ran = self.used.saturating_sub(self.told);
        self.told = self.told.max(self.used);
        ran
    }

    /// It has used this since it joined.
    pub fn has_used(&mut self, used: Nanoseconds) {
        if std::mem::take(&mut self.is_found) {
            self.told = used;
        }
        self.used = used;
    }

    /// The policy has chosen it for a processor on which it may not run. Whether it has not run for long since it first did so.
    pub fn has_been_barred(&mut self, now: Nanoseconds) -> bool {
        let since = *self.barred_since.get_or_insert(now);
        now.saturating_sub(since) >= LONG_BARRED
    }

    /// It wants a processor, and the policy may choose it: the processors that it may run on.
    pub fn waits_for(&self) -> Option<u64> {
        (self.is_ready && self.can_run).then_some(self.allowed)
    }

    pub fn may_run_on(&self, processor: usize) -> bool {
        self.allowed >> (processor & 63) & 1 == 1
    }
}

/// A weight of the kernel as a share.
pub(crate) fn share(weight: u32) -> Share {
    Share::new(weight).unwrap_or(Share::ONE)
}

/// The share of a task in domains of these weights, one inside the other. Policies without domains give each task the shares of all its
/// domains, times its own; to the others it is all the same, because this is so for all tasks of the domain.
pub(crate) fn share_in(weight: u32, of_domains: impl Iterator<Item = u32>) -> Share {
    let ordinary = f64::from(Weight::ORDINARY.get());
    let share =
        of_domains.fold(f64::from(weight), |share, of_domain| share * f64::from(of_domain) / ordinary);
    // Rounded down; beyond the greatest share, it is the greatest one, and below the smallest one the smallest.
    Share::new((share as u32).clamp(Share::ONE.get(), Share::MAX.get())).unwrap_or(Share::ONE)
}

/// All clients, by number.
#[derive(Debug)]
pub(crate) struct Clients(Vec<Option<Client>>);

impl Clients {
    /// With room for this number of them.
    pub fn with_room(most: usize) -> Clients {
        Clients(vec![None; most])
    }

    pub fn get(&mut self, number: ClientId) -> Option<&mut Client> {
        self.0.get_mut(number.index())?.as_mut()
    }

    pub fn put(&mut self, number: ClientId, client: Client) {
        if let Some(place) = self.0.get_mut(number.index()) {
            *place = Some(client);
        }
    }

    pub fn take(&mut self, number: ClientId) -> Option<Client> {
        self.0.get_mut(number.index())?.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_1_shares_of_all_groups_around_a_task_are_multiplied_and_stay_in_their_bounds() {
        let share = |weight, domains: &[u32]| share_in(weight, domains.iter().copied()).get();
        assert_eq!([share(100, &[]), share(100, &[300, 50]), share(88, &[1000])], [100, 150, 880]);
        assert_eq!(share(200, &[10_000, 10_000]), Share::MAX.get());
        assert_eq!(share(3, &[1, 1, 1]), 1);
    }
}
