//! Whether boosts went to the clients that they were meant for.

/// Partial boosts and how many of them hit (TAVS paper, §5.2). A boost hits if an I/O-bound task wakes while
/// it lasts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Boosts {
    granted: u64,
    hits: u64,
}

impl Boosts {
    /// A partial boosting ended.
    pub fn ended(&mut self, has_hit: bool) {
        self.granted += 1;
        self.hits += u64::from(has_hit);
    }

    /// How many partial boostings ended.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// The partial boosting hit ratio, PBHR, 0 to 1; `None` without any boost. The other boosts are false
    /// positives.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.granted > 0).then(|| self.hits as f64 / self.granted as f64)
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Boosts) {
        self.granted += other.granted;
        self.hits += other.hits;
    }
}

#[cfg(test)]
mod tests {
    use super::Boosts;

    #[test]
    fn tavs_8_the_hit_ratio_is_hits_of_boostings() {
        let mut boosts = Boosts::default();
        assert_eq!(boosts.hit_ratio(), None);
        [true, true, false, true].into_iter().for_each(|has_hit| boosts.ended(has_hit));
        assert_eq!((boosts.granted(), boosts.hit_ratio()), (4, Some(0.75)));
    }
}
