//! A summary of the stretches: median and spread for each kind.

/// What is done during a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StretchKind {
    /// Nothing is logged.
    Off,
    /// Kernel and drivers are logged, and the scheduler does not act.
    Log,
    /// Kernel and drivers are logged, and the scheduler acts.
    Act,
}

impl StretchKind {
    /// The order within a round.
    pub const ALL: [StretchKind; 3] = [StretchKind::Off, StretchKind::Log, StretchKind::Act];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            StretchKind::Off => "logging off",
            StretchKind::Log => "logging on",
            StretchKind::Act => "scheduler acting",
        }
    }
}

/// One stretch, measured.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// Whether it was logged, and whether the scheduler acted.
    pub kind: StretchKind,
    /// Requests answered in a second.
    pub throughput: f64,
    /// The share of requests that crossed from one processor to another, 0 to 1.
    pub crossings: f64,
    /// The times that half of the requests, and 99 of 100 requests, did not exceed, in microseconds.
    pub latency_us: [f64; 2],
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
    /// The middle figure; of an even number of figures, the mean of the two in the middle.
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
pub fn spread(stretches: &[Stretch], kind: StretchKind, figure: impl Fn(&Stretch) -> f64) -> Option<Spread> {
    Spread::of(stretches.iter().filter(|stretch| stretch.kind == kind).map(figure))
}

/// By how much a kind of stretch changed the throughput, in percent. Each stretch is compared with the one
/// without logging in the same round, so that changes of the machine's other load count less.
pub fn change(stretches: &[Stretch], kind: StretchKind) -> Option<Spread> {
    let throughputs =
        |kind| stretches.iter().filter(move |stretch| stretch.kind == kind).map(|it| it.throughput);
    Spread::of(
        throughputs(kind)
            .zip(throughputs(StretchKind::Off))
            .map(|(with, without)| 100.0 * (with / without - 1.0)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_taken_within_rounds() {
        let stretch = |kind, throughput| Stretch {
            kind,
            throughput,
            crossings: 0.0,
            latency_us: [1.0; 2],
            moves: 0,
            rows: 0,
            lost: 0,
        };
        // The machine was ten times slower in the second round; in each, acting doubled the throughput.
        let rounds = [
            (StretchKind::Off, 100.0),
            (StretchKind::Act, 200.0),
            (StretchKind::Act, 20.0),
            (StretchKind::Off, 10.0),
        ];
        let stretches = rounds.map(|(kind, throughput)| stretch(kind, throughput));
        assert_eq!(
            change(&stretches, StretchKind::Act),
            Some(Spread { median: 100.0, least: 100.0, most: 100.0 })
        );
        assert_eq!(change(&stretches, StretchKind::Log), None);
    }

    #[test]
    fn the_median_of_an_even_number_lies_in_the_middle() {
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]), Some(Spread { median: 2.5, least: 1.0, most: 4.0 }));
        assert_eq!(Spread::of([7.0]), Some(Spread { median: 7.0, least: 7.0, most: 7.0 }));
        assert_eq!(Spread::of([]), None);
    }
}
