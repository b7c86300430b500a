//! What the stretches add up to: medians and spread for each kind.

/// What is done during a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing is logged.
    Off,
    /// Kernel and drivers are logged, nobody acts.
    Log,
    /// They are logged and the scheduler acts on it.
    Act,
}

impl Kind {
    /// The order within a round.
    pub const ALL: [Kind; 3] = [Kind::Off, Kind::Log, Kind::Act];

    /// As it stands in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Off => "logging off",
            Kind::Log => "logging on",
            Kind::Act => "scheduler acting",
        }
    }
}

/// One stretch, measured.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// What was done.
    pub kind: Kind,
    /// Requests answered in a second.
    pub throughput: f64,
    /// The share of requests that crossed from one processor to another, 0 to 1.
    pub crossings: f64,
    /// Clients that the scheduler moved.
    pub moves: usize,
    /// Log rows that were read.
    pub rows: u64,
    /// Log rows that were lost, overwritten or refused.
    pub lost: u64,
}

/// Median and extremes of one figure over the stretches of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one; the mean of the two in the middle for an even number.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl Spread {
    /// The spread of some figures; `None` if there are none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (&least, &most) = (sorted.first()?, sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Spread { median: f64::midpoint(low, high), least, most })
    }
}

/// The spread of a figure over the stretches of a kind.
pub fn spread(stretches: &[Stretch], kind: Kind, figure: impl Fn(&Stretch) -> f64) -> Option<Spread> {
    Spread::of(stretches.iter().filter(|stretch| stretch.kind == kind).map(figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_in_the_middle() {
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]), Some(Spread { median: 2.5, least: 1.0, most: 4.0 }));
        assert_eq!(Spread::of([7.0]), Some(Spread { median: 7.0, least: 7.0, most: 7.0 }));
        assert_eq!(Spread::of([]), None);
    }
}
