//! Who waited, ready, for how long: starvation.

use mete_policy::Nanoseconds;

use super::Latencies;

/// A client's waits from being ready to running, and those of them that count as starvation.
#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    limit_ns: Nanoseconds,
    starved: u64,
    starved_ns: Nanoseconds,
    waits: Latencies,
}

impl Waits {
    /// A wait longer than `limit_ns` is starvation.
    #[must_use]
    pub fn new(limit_ns: Nanoseconds) -> Waits {
        Waits { limit_ns, starved: 0, starved_ns: 0, waits: Latencies::default() }
    }

    /// A wait ended: the client runs, or the run of the machine is over.
    pub fn record(&mut self, wait_ns: Nanoseconds) {
        self.waits.record(wait_ns);
        if wait_ns > self.limit_ns {
            self.starved += 1;
            self.starved_ns = self.starved_ns.saturating_add(wait_ns - self.limit_ns);
        }
    }

    /// How many waits were longer than the limit.
    #[must_use]
    pub fn starved(&self) -> u64 {
        self.starved
    }

    /// How much longer than the limit all of these were together.
    #[must_use]
    pub fn starved_ns(&self) -> Nanoseconds {
        self.starved_ns
    }

    /// All waits.
    #[must_use]
    pub fn distribution(&self) -> &Latencies {
        &self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::Waits;

    #[test]
    fn only_waits_beyond_the_limit_are_starvation() {
        let mut waits = Waits::new(100);
        [100, 101, 250].into_iter().for_each(|wait_ns| waits.record(wait_ns));
        assert_eq!((waits.starved(), waits.starved_ns(), waits.distribution().count()), (2, 151, 3));
    }
}
