//! What came out of the paper's claims on a player beside hogs.

use std::ops::RangeInclusive;

use serde_json::json;

use super::Curve;
use super::run::PlayerResult;
use crate::study::{Finding, Findings};

/// Percent of frames by which repeated runs differ in any case.
const UNSURE: u32 = 5;
/// Migrations a second by which repeated runs differ: two or three in a run.
const UNSURE_MOVES: f64 = 1.0;
/// Few hogs; then many, which are more than the processors have room for (§9.2: 4 to 7, and 10, with four processors).
const FEW: RangeInclusive<usize> = 1..=3;
const MANY: RangeInclusive<usize> = 6..=usize::MAX;

/// The findings are those of our own player, because the real one does not report lost frames.
pub(super) fn of(curves: &[Curve]) -> Findings {
    let points = curves.iter().find(|curve| curve.player == "decoder").map(|curve| &curve.points[..]);
    let points = points.unwrap_or_default();
    let losses: Vec<_> = points.iter().filter_map(|point| Some((point.hogs, point.frames_lost?))).collect();
    let others_percent = points.iter().map(|point| point.others_percent).fold(0.0, f64::max);
    let findings =
        [("degrades", degrades(&losses)), ("turns", turns(&losses)), ("followed", followed(points))];
    findings.map(|(id, found)| (id, found.map(|found| found.unless_busy(others_percent)))).into()
}

/// Beside the largest number of hogs, more frames are lost than beside none.
fn degrades(losses: &[(usize, f64)]) -> Option<Finding> {
    let ((_, first), (hogs, last)) = (losses.first()?, losses.last()?);
    let values = json!({ "first_percent": first, "last_percent": last, "hogs": hogs });
    Some(Finding::new(values, *last > first + f64::from(UNSURE)))
}

/// Beside some number of hogs, fewer frames are lost than beside the next smaller number.
fn turns(losses: &[(usize, f64)]) -> Option<Finding> {
    if losses.len() < 2 {
        return None;
    }
    let better = losses.windows(2).find(|pair| pair[1].1 + f64::from(UNSURE) < pair[0].1);
    let numbers = better.map(|pair| {
        let ((few, few_percent), (many, many_percent)) = (pair[0], pair[1]);
        json!({ "few": few, "few_percent": few_percent, "many": many, "many_percent": many_percent })
    });
    Some(Finding::new(json!({ "better": numbers, "unsure_percent": UNSURE }), better.is_some()))
}

/// Beside each of the larger numbers of hogs, there are less than half as many migrations as beside few hogs.
fn followed(points: &[PlayerResult]) -> Option<Finding> {
    let (few, many) = (most_migrations(points, FEW)?, most_migrations(points, MANY)?);
    let values = json!({ "few_a_second": few, "many_a_second": many });
    Some(Finding::new(values, few > 2.0 * many + UNSURE_MOVES))
}

fn most_migrations(points: &[PlayerResult], hogs: RangeInclusive<usize>) -> Option<f64> {
    let of = points.iter().filter(|point| hogs.contains(&point.hogs));
    of.map(|point| point.migrations_a_second).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use mete_measure::Verdict;

    fn verdicts(points: &[(usize, f64, f64)]) -> Vec<Verdict> {
        let point = |&(hogs, lost, migrations_a_second)| PlayerResult {
            hogs,
            share: BTreeMap::new(),
            others_percent: 0.0,
            migrations_a_second,
            frames_lost: Some(lost),
            lost: 0,
        };
        let curve = Curve { player: "decoder", points: points.iter().map(point).collect() };
        crate::study::verdicts(of(&[curve]))
    }

    #[test]
    fn klog_9_a_player_as_in_the_paper_agrees_and_one_that_just_gets_less_differs() {
        let papers = [(0, 0.0, 1.0), (3, 60.0, 30.0), (7, 40.0, 5.0), (10, 30.0, 4.0)];
        assert_eq!(verdicts(&papers), [Verdict::Holds; 3]);
        let steady = [(0, 0.0, 1.0), (3, 40.0, 1.0), (7, 60.0, 5.0), (10, 80.0, 9.0)];
        assert_eq!(verdicts(&steady), [Verdict::Holds, Verdict::Fails, Verdict::Fails]);
        assert_eq!(verdicts(&[]), [Verdict::NotMeasured; 3]);
    }

    #[test]
    fn klog_9_migrations_become_fewer_only_by_more_than_runs_differ_and_for_good() {
        let followed = |migrations: [f64; 5]| {
            let points: Vec<_> =
                [1, 2, 3, 6, 10].into_iter().zip(migrations).map(|(hogs, of)| (hogs, 0.0, of)).collect();
            verdicts(&points)[2]
        };
        assert_eq!(followed([2.0, 30.0, 4.0, 6.0, 4.0]), Verdict::Holds);
        assert_eq!(followed([4.0; 5]), Verdict::Fails, "as many as before");
        assert_eq!(followed([4.2, 3.0, 2.0, 1.7, 1.7]), Verdict::Fails, "half as many, but for the margin");
        assert_eq!(followed([0.8, 0.0, 0.0, 0.0, 0.0]), Verdict::Fails, "one migration is none");
        assert_eq!(followed([30.0, 4.0, 4.0, 20.0, 1.0]), Verdict::Fails, "they come back");
        assert_eq!(verdicts(&[(0, 0.0, 1.0), (3, 0.0, 9.0)])[2], Verdict::NotMeasured);
    }
}
