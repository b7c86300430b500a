//! Many random share assignments at one point: a number of clients and a sum of shares.

use mete_policy::{Policy, Setup};

use super::{QuantaError, Shares, run};

/// A point of the papers' surfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// How many clients there are.
    pub clients: u32,
    /// The sum of their shares.
    pub total: u32,
}

/// What is simulated at a point. The assignments depend on nothing but these numbers, so every policy gets
/// the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experiment {
    /// The point.
    pub point: Point,
    /// How many scheduling cycles each assignment is run for.
    pub cycles: u32,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The extremes of some assignments, one after another.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// The lowest error of each assignment, in time units.
    pub lowest_tu: Vec<f64>,
    /// The highest error of each assignment, in time units.
    pub highest_tu: Vec<f64>,
    /// How many decisions all of them took.
    pub decisions: u64,
    /// How many of the schedules did not end with every client having exactly its share.
    pub uneven: u64,
}

impl Tally {
    /// Puts the assignments of another tally behind these.
    pub fn append(&mut self, mut other: Tally) {
        self.lowest_tu.append(&mut other.lowest_tu);
        self.highest_tu.append(&mut other.highest_tu);
        self.decisions += other.decisions;
        self.uneven += other.uneven;
    }
}

impl Experiment {
    /// The shares of the `nth` assignment.
    ///
    /// # Errors
    ///
    /// [`QuantaError::NoClients`], [`QuantaError::Sum`].
    pub fn shares(&self, nth: u32) -> Result<Shares, QuantaError> {
        let Point { clients, total } = self.point;
        Shares::random(clients, total.into(), self.seed_of(nth))
    }

    /// Runs these assignments with a new policy each.
    ///
    /// # Errors
    ///
    /// As [`run`] and [`Experiment::shares`].
    pub fn run<P: Policy>(
        &self,
        assignments: std::ops::Range<u32>,
        make: impl Fn(&Setup) -> P,
    ) -> Result<Tally, QuantaError> {
        let mut tally = Tally::default();
        for nth in assignments {
            let shares = self.shares(nth)?;
            let mut policy = make(&shares.setup(self.seed_of(nth)));
            let outcome = run(&mut policy, &shares, self.cycles)?;
            tally.lowest_tu.push(outcome.errors.lowest_tu());
            tally.highest_tu.push(outcome.errors.highest_tu());
            tally.decisions += outcome.decisions;
            tally.uneven += u64::from(!outcome.repeats);
        }
        Ok(tally)
    }

    fn seed_of(&self, nth: u32) -> u64 {
        let parts = [self.point.clients, self.point.total, nth];
        parts.iter().fold(mixed(self.seed), |seed, &part| mixed(seed ^ u64::from(part)))
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): it makes neighbouring numbers unlike each
/// other.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
