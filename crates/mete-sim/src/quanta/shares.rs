//! Share assignments: given, or random with a given sum.

use mete_policy::{Nanoseconds, Setup, Share};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::{QUANTUM_NS, QuantaError};

/// One share for each client. It is never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shares {
    shares: Vec<Share>,
    total: u64,
}

impl Shares {
    /// These shares, by client.
    ///
    /// # Errors
    ///
    /// [`QuantaError::NoClients`].
    pub fn new(shares: Vec<Share>) -> Result<Shares, QuantaError> {
        if shares.is_empty() {
            return Err(QuantaError::NoClients);
        }
        let total = shares.iter().map(|share| u64::from(share.get())).sum();
        Ok(Shares { shares, total })
    }

    /// Random shares that add up to `total`: uniform numbers, scaled so that their sum is what is left when
    /// every client has a share of one (VTRR paper, §5.1). The same seed gives the same shares on every
    /// machine.
    ///
    /// # Errors
    ///
    /// [`QuantaError::NoClients`], and [`QuantaError::Sum`] if the shares of this number of clients cannot
    /// have that sum.
    pub fn random(clients: u32, total: u64, seed: u64) -> Result<Shares, QuantaError> {
        // No share exceeds the sum's excess plus one, so this bound keeps each share in its range.
        let most = u64::from(clients) + u64::from(Share::MAX.get()) - 1;
        if clients == 0 {
            return Err(QuantaError::NoClients);
        }
        if !(u64::from(clients)..=most).contains(&total) {
            return Err(QuantaError::Sum { clients, total, most });
        }
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        // At least 1, so that the weights have a sum to divide by.
        let weights: Vec<u64> = (0..clients).map(|_| 1 + u64::from(random.next_u32())).collect();
        Shares::new(scaled(&weights, total - u64::from(clients)))
    }

    /// The shares, by client.
    pub fn as_slice(&self) -> &[Share] {
        &self.shares
    }

    /// How many clients there are.
    pub fn clients(&self) -> u32 {
        self.shares.len() as u32
    }

    /// The sum of shares: the length of a scheduling cycle in quanta.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// What a policy for these clients has to be made for: one processor, one domain, quanta of
    /// [`QUANTUM_NS`].
    pub fn setup(&self, seed: u64) -> Setup {
        Setup { quantum_ns: QUANTUM_NS, seed, ..Setup::for_clients(self.clients()) }
    }

    /// The length of this number of scheduling cycles, if errors over it are exact in 64 bits.
    pub(super) fn cycles_ns(&self, cycles: u32) -> Result<Nanoseconds, QuantaError> {
        let length_ns = QUANTUM_NS.get().checked_mul(self.total).and_then(|ns| ns.checked_mul(cycles.into()));
        // An error is at most the length times the sum of shares.
        let most =
            length_ns.and_then(|ns| ns.checked_mul(self.total)).filter(|&most| most <= i64::MAX as u64);
        length_ns
            .filter(|_| most.is_some())
            .map(Nanoseconds::new)
            .ok_or(QuantaError::TooLong { total: self.total, cycles })
    }
}

/// Shares of one and, on top, parts of `excess` in proportion to the weights. Each part is what its weight
/// adds to the running sum, rounded down, so the parts add up to exactly `excess`.
fn scaled(weights: &[u64], excess: u64) -> Vec<Share> {
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let (mut so_far, mut given) = (0u128, 0u32);
    let shares = weights.iter().map(|&weight| {
        so_far += u128::from(weight);
        let until_here = (so_far * u128::from(excess) / sum) as u32;
        let part = until_here - given;
        given = until_here;
        Share::new(1 + part).unwrap_or(Share::MAX)
    });
    shares.collect()
}
