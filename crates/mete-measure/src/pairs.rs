//! What one setting costs against another one, measured in pairs of stretches of the same work. A stretch
//! consists of short pieces that alternate with those of the other stretch; a throw of a coin decides which
//! of two pieces comes first. Measuring goes on until the quotient is known well enough or the time is up.
//!
//! Other activity of the machine meets both stretches of a pair alike, and periodic activity meets no setting
//! more often than the other. A cost that a setting has only now and then, once in a stretch, is in every
//! quotient of stretches. A median of quotients of pieces would leave it out.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::reason::Reason;
use crate::statistics::{Interval, median};

/// The least number of pairs before the quotient can count as known.
const LEAST_PAIRS: usize = 20;
/// Pieces of a stretch.
pub const PIECES: usize = 10;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// How exactly the quotient's median shall be known, to both sides: 0.01 is one percent of a quotient of
    /// 1.
    pub within: f64,
    /// The longest time to measure, even if the quotient is not known by then.
    pub at_most: Duration,
}

/// Why measuring ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The quotient is known as exactly as the goal asks for.
    Known,
    /// The time was up.
    TimeUp,
    /// The caller stopped it.
    Stopped,
}

/// The quotients of the pairs.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// The work with the setting divided by the work without it, pair by pair.
    pub quotients: Vec<f64>,
    /// Why there are not more pairs.
    pub ended: Ended,
}

impl Pairs {
    /// The median of the quotients.
    pub fn median(&self) -> Option<f64> {
        median(&self.quotients)
    }

    /// The interval in which the median lies.
    pub fn interval(&self) -> Option<Interval> {
        Interval::of_median(&self.quotients)
    }

    /// How exactly the median is known, and why not more exactly, in words.
    pub fn in_words(&self) -> String {
        let pairs = in_pairs(self.quotients.len());
        // Half of the width, in percent.
        let half = self.interval().map(|interval| 50.0 * interval.width());
        let known = half.map_or("not known".to_owned(), |half| format!("known to ±{half:.1} %"));
        let why = match self.ended {
            Ended::Known => "",
            Ended::TimeUp => ", when the time was up",
            Ended::Stopped => ", when it was stopped",
        };
        format!("{known} after {pairs}{why}")
    }
}

/// A number of pairs, in words.
pub fn in_pairs(count: usize) -> String {
    if count == 1 { "1 pair".to_owned() } else { format!("{count} pairs") }
}

/// Measures pairs of several settings, numbered from 1. All of them are compared with number 0. `measure`
/// measures one piece with a setting, and returns the work done in a second. All pieces have the same length.
/// Before each pair, `goes_on` may end the measurement by `false`. The answer has the pairs of each setting,
/// in order. Measuring goes on until the quotients of all settings are known.
///
/// # Errors
///
/// The error of `measure`; or that no work is done without a setting, or that no pair was measured.
pub fn several_pairs(
    goal: Goal,
    settings: usize,
    goes_on: impl FnMut() -> bool,
    measure: impl FnMut(usize) -> Result<f64, Reason>,
) -> Result<Vec<Pairs>, Reason> {
    in_the_order_of(Coin::new(), goal, settings, goes_on, measure)
}

fn in_the_order_of(
    mut coin: Coin,
    goal: Goal,
    settings: usize,
    mut goes_on: impl FnMut() -> bool,
    mut measure: impl FnMut(usize) -> Result<f64, Reason>,
) -> Result<Vec<Pairs>, Reason> {
    let (begin, mut all) = (Instant::now(), vec![Vec::new(); settings]);
    let ended = loop {
        if all.iter().all(|quotients| is_known(goal, quotients)) {
            break Ended::Known;
        }
        if !goes_on() {
            break Ended::Stopped;
        }
        // At least one pair is measured, even if no time was given.
        if begin.elapsed() >= goal.at_most && !all[0].is_empty() {
            break Ended::TimeUp;
        }
        let done = round(settings, &mut coin, &mut measure)?;
        // Place 0 is what all settings are compared with; `round` has made sure that it is not zero.
        for (quotients, with) in all.iter_mut().zip(&done[1..]) {
            quotients.push(with / done[0]);
        }
    };
    if all.iter().any(Vec::is_empty) {
        return Err(Reason::new("stopped before it was measured"));
    }
    Ok(all.into_iter().map(|quotients| Pairs { quotients, ended }).collect())
}

fn is_known(goal: Goal, quotients: &[f64]) -> bool {
    let interval = Interval::of_median(quotients).filter(|_| quotients.len() >= LEAST_PAIRS);
    interval.is_some_and(|interval| interval.width() <= 2.0 * goal.within)
}

/// Measures one stretch of each setting, piece by piece in random order.
fn round(
    settings: usize,
    coin: &mut Coin,
    measure: &mut impl FnMut(usize) -> Result<f64, Reason>,
) -> Result<Vec<f64>, Reason> {
    let (mut done, mut order) = (vec![0.0; settings + 1], (0..=settings).collect::<Vec<_>>());
    for _ in 0..PIECES {
        // A new order for each piece: periodic activity of the machine hits no place in the order more often.
        coin.shuffle(&mut order);
        for &nth in &order {
            done[nth] += measure(nth)?;
        }
    }
    if done[0] > 0.0 { Ok(done) } else { Err(Reason::new("nothing was done in a whole stretch")) }
}

/// Fair throws of a coin (SplitMix64), another series for each coin.
pub struct Coin(u64);

impl Coin {
    /// A coin whose series depends on the clock.
    #[allow(clippy::new_without_default, reason = "two coins are not alike")]
    pub fn new() -> Coin {
        let now = clock_gettime(ClockId::Monotonic);
        Coin(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    /// Heads or tails.
    pub fn throw(&mut self) -> bool {
        self.number() & 1 == 1
    }

    /// Shuffles the items: every order is equally likely.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            // The remainder favours small numbers by less than one in 2⁶⁰ here, which does not matter.
            items.swap(last, (self.number() % (last as u64 + 1)) as usize);
        }
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: Goal = Goal { within: 0.01, at_most: Duration::from_secs(3600) };

    /// The pairs of one setting.
    fn pairs(
        goal: Goal,
        goes_on: impl FnMut() -> bool,
        mut measure: impl FnMut(bool) -> Result<f64, Reason>,
    ) -> Result<Pairs, Reason> {
        Ok(several_pairs(goal, 1, goes_on, |nth| measure(nth > 0))?.remove(0))
    }

    /// A machine whose speed drifts by a third and wavers from stretch to stretch. Logging costs 4 %.
    fn machine(noise: f64) -> impl FnMut(bool) -> Result<f64, Reason> {
        let (mut stretch, mut coin) = (0, Coin(7));
        move |is_on| {
            stretch += 1;
            let wavers = (0..8).map(|_| f64::from(u8::from(coin.throw()))).sum::<f64>() / 8.0 - 0.5;
            let drift = 1.0 + 0.3 * f64::from(stretch % 500) / 500.0;
            Ok(50_000.0 * drift * (1.0 + noise * wavers) * if is_on { 0.96 } else { 1.0 })
        }
    }

    #[test]
    fn log_17_a_cost_is_found_within_a_percent_on_a_machine_that_drifts_and_wavers() {
        let mut measure = machine(0.2);
        // The order is fixed: with random orders, one interval in twenty would miss the true value.
        let found = in_the_order_of(Coin(3), GOAL, 1, || true, |nth| measure(nth > 0)).unwrap();
        let [found] = &found[..] else { panic!("{found:?}") };
        let interval = found.interval().unwrap();
        assert!(found.ended == Ended::Known && interval.width() <= 0.02, "{interval:?}");
        assert!((0.95..=0.97).contains(&found.median().unwrap()), "{:?}", found.median());
        assert!(found.in_words().starts_with("known to ±"), "{}", found.in_words());
    }

    #[test]
    fn log_17_it_ends_when_the_time_is_up_and_says_so() {
        let goal = Goal { within: 1e-9, at_most: Duration::ZERO };
        let found = pairs(goal, || true, machine(0.2)).unwrap();
        assert_eq!((found.quotients.len(), found.ended), (1, Ended::TimeUp));
        assert_eq!(found.in_words(), "not known after 1 pair, when the time was up");
        assert!(pairs(GOAL, || false, machine(0.2)).is_err());
    }

    #[test]
    fn log_17_either_setting_comes_first_and_both_are_in_each_pair() {
        let mut asked = Vec::new();
        let found = pairs(
            GOAL,
            || true,
            |is_on| {
                asked.push(is_on);
                Ok(1.0)
            },
        );
        assert_eq!(found.unwrap().quotients, [1.0; LEAST_PAIRS]);
        assert!(asked.chunks(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(asked.len(), 2 * PIECES * LEAST_PAIRS);
        let first = asked.chunks(2).filter(|pair| pair[0]).count();
        assert!((1..PIECES * LEAST_PAIRS).contains(&first), "{first}");
    }

    #[test]
    fn log_17_settings_beside_each_other_share_what_they_are_compared_with() {
        let mut asked = [0; 3];
        let found = several_pairs(
            GOAL,
            2,
            || true,
            |nth| {
                asked[nth] += 1;
                Ok([100.0, 90.0, 100.0][nth])
            },
        );
        let medians: Vec<_> = found.unwrap().iter().map(Pairs::median).collect();
        assert_eq!(medians, [Some(0.9), Some(1.0)]);
        assert_eq!(asked, [PIECES * LEAST_PAIRS; 3]);
    }

    #[test]
    fn log_17_what_a_setting_costs_once_in_a_stretch_is_in_the_median() {
        let mut pieces_with = 0;
        let found = pairs(
            GOAL,
            || true,
            |is_with| {
                pieces_with += usize::from(is_with);
                Ok(if is_with && pieces_with.is_multiple_of(PIECES) { 50.0 } else { 100.0 })
            },
        );
        assert!((found.unwrap().median().unwrap() - 0.95).abs() < 1e-9);
    }
}
