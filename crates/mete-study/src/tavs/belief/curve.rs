//! The degree of belief in each task of a domain over time.

use std::ops::Range;

use mete_measure::reason::Reason;
use mete_plot::Series;
use mete_policy::{CreditSettings, DomainIndex, Nanoseconds, TaskId};

use crate::simulated::Case;

/// The time between two readings of the beliefs.
const EVERY_NS: Nanoseconds = Nanoseconds::new(200_000_000);

/// The degree of belief in one task.
pub(crate) struct Curve {
    pub task: String,
    /// Seconds and degree of belief.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// The part (0 to 1) of a span of time during which the belief is above a threshold.
    pub(super) fn part_above(&self, threshold: f64, during_s: Range<f64>) -> f64 {
        let within = || self.points.iter().filter(|(at_s, _)| during_s.contains(at_s));
        // Readings are at equal distances, so their number stands for time.
        within().filter(|(_, belief)| *belief > threshold).count() as f64 / within().count().max(1) as f64
    }

    /// The curve as a line of a picture.
    pub(super) fn series(&self) -> Series {
        Series { name: self.task.clone(), points: self.points.clone() }
    }

    /// When the belief is first above a threshold, not before `from_s`.
    pub(super) fn above_from(&self, threshold: f64, from_s: f64) -> Option<f64> {
        self.points
            .iter()
            .find(|&&(at_s, belief)| at_s >= from_s && belief > threshold)
            .map(|&(at_s, _)| at_s)
    }
}

/// Runs a case with seed 1 and reads the beliefs in the tasks of its watched domain, whose IOthreshold is
/// changed at the given seconds to the given milliseconds.
pub(super) fn beliefs(case: &Case, changes: &[(f64, f64)]) -> Result<Vec<Curve>, Reason> {
    let scenario = case.scenario()?;
    let (client, _) = case.watched(&scenario)?;
    let domain = scenario.clients.get(client.index()).map_or(DomainIndex::ROOT, |client| client.domain);
    let policy = scenario.credit(&scenario.setup(1), CreditSettings::TAVS);
    let mut host = scenario.host(policy, (), 1);
    let tasks = scenario.guest_tasks(client);
    let mut curves: Vec<Curve> =
        tasks.map(|task| Curve { task: task.to_owned(), points: Vec::new() }).collect();
    let mut changes = changes.iter().peekable();
    for now_ns in (0..=scenario.duration_ns.get()).step_by(EVERY_NS.get() as usize) {
        host.run_until(Nanoseconds::new(now_ns)).map_err(Reason::from_error)?;
        let now_s = now_ns as f64 / 1e9;
        // Changes are in order of time, and at most one falls between two readings.
        if let Some((_, to_ms)) = changes.next_if(|(at_s, _)| *at_s <= now_s) {
            host.policy_mut().set_io_threshold(domain, Nanoseconds::new((to_ms * 1e6) as u64));
        }
        for (task, curve) in (0..).zip(&mut curves) {
            curve.points.extend(
                host.policy().belief(client, TaskId::new(task)).map(|belief| (now_s, f64::from(belief))),
            );
        }
    }
    Ok(curves)
}
