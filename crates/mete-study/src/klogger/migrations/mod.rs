//! Migrations and processor share of a player beside a growing number of hogs (KLogger paper, §9.2, figure
//! 6).

mod player;
mod run;

use std::cmp::Reverse;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_plot::{self as plot, Axis, Series};
use mete_trace::ProcessNames;
use serde::Serialize;
use serde_json::{Value, json};

use self::run::{EVENTS, PLAYERS, PlayerResult, Role};
use super::of_trace::{self, loss};
use crate::study::{
    Finding, Findings, Study, StudyFile, StudyOptions, StudyResults, about, measure_until_failure,
};
use crate::trace::{Runs, Usage};

/// The numbers of hogs beside the player. The paper's largest one is ten.
const HOGS: [usize; 8] = [0, 1, 2, 3, 4, 6, 8, 10];
/// How long each number is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_millis(2_400), Duration::from_millis(600)];
/// The number of processes that are shown of a recorded trace: those that used the processors most.
const SHOWN: usize = 12;
/// Percent of frames by which repeated runs differ in any case.
const UNSURE: u32 = 5;
/// Migrations a second by which repeated runs differ: two or three in a run.
const UNSURE_MOVES: f64 = 1.0;
/// Few hogs; then many, which are more than the processors have room for (§9.2: 4 to 7, and 10, with four
/// processors).
const FEW: RangeInclusive<usize> = 1..=3;
const MANY: RangeInclusive<usize> = 6..=usize::MAX;

pub(crate) struct Migrations;

/// One player over the numbers of hogs.
#[derive(Serialize)]
pub(crate) struct Curve {
    player: &'static str,
    points: Vec<PlayerResult>,
}

impl Study for Migrations {
    about!(
        "migrations",
        "what a player has of the processors beside a growing number of hogs (KLogger figure 6)"
    );
    type Found = Vec<Curve>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let time = WATCHED[usize::from(options.is_quick)];
        let curves = PLAYERS.map(|(player, measure)| {
            let missing = |reason| vec![Row::new(format!("{player}: all rows"), "percent", Err(reason))];
            let hogs = HOGS.into_iter();
            let points =
                measure_until_failure(player, hogs, report, progress, |hogs, progress| {
                    match measure(hogs, time, progress) {
                        Ok(point) => (rows(player, &point), Some(point)),
                        Err(reason) => (missing(reason), None),
                    }
                });
            Curve { player, points }
        });
        curves.into()
    }

    /// The findings are those of our own player, because the real one does not report lost frames.
    fn findings(curves: &Self::Found) -> Findings {
        let points = curves.iter().find(|curve| curve.player == "decoder").map(|curve| &curve.points[..]);
        let points = points.unwrap_or_default();
        let losses: Vec<_> =
            points.iter().filter_map(|point| Some((point.hogs, point.frames_lost?))).collect();
        let others_percent = points.iter().map(|point| point.others_percent).fold(0.0, f64::max);
        let findings =
            [("degrades", degrades(&losses)), ("turns", turns(&losses)), ("followed", followed(points))];
        findings.map(|(id, found)| (id, found.map(|found| found.unless_busy(others_percent)))).into()
    }

    fn facts(curves: &Self::Found) -> Value {
        let beside = [0, 2, 10].map(|hogs| find(curves, hogs));
        json!({
            "frames_lost": beside.map(|point| point?.frames_lost),
            "share": beside.map(|point| point?.share_of(Role::Player)),
            "curves": curves,
        })
    }

    fn pictures(curves: &Self::Found) -> Vec<StudyFile> {
        let share = |name, role| series(curves, name, |point| point.share_of(role));
        let shares =
            [share("player", Role::Player), share("display", Role::Display), share("hogs", Role::Hog)]
                .concat();
        let frames = series(curves, "frames lost", |point| point.frames_lost);
        let migrations = series(curves, "migrations", |point| Some(point.migrations_a_second));
        vec![
            drawn("share.svg", "Processor share", "percent of all processors", &shares),
            drawn("frames.svg", "Frames lost", "percent", &frames),
            drawn("migrations.svg", "Migrations of the player", "a second", &migrations),
        ]
    }
}

/// The study of a recorded trace: share and migrations of the processes that used the processors most.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = of_trace::open(directory, "scheduler", &EVENTS)?;
    let mut names = ProcessNames::of_trace(&recorded);
    recorded.each(|next| names.take(&next));
    let usage = Usage::of(&recorded, Runs::default());
    let mut most: Vec<_> = usage.processes().collect();
    most.sort_by_key(|(pid, used)| (Reverse(used.ns), *pid));
    most.truncate(SHOWN);
    let rows = most.into_iter().flat_map(|(pid, used)| {
        let name = format!("{} ({pid})", names.of(pid));
        let percent = Ok(vec![usage.percent(used.ns)]);
        let share = Row::new(format!("{name}: processor share"), "percent", percent);
        [
            share.note("of all processors").note(loss(recorded.lost())),
            Row::new(format!("{name}: migrations"), "", Ok(vec![used.migrations.into()])),
        ]
    });
    Ok(of_trace::results::<Migrations>(directory, rows.collect(), Vec::new()))
}

/// The first player beside this number of hogs.
fn find(curves: &[Curve], hogs: usize) -> Option<&PlayerResult> {
    curves.first()?.points.iter().find(|point| point.hogs == hogs)
}

fn rows(player: &str, point: &PlayerResult) -> Vec<Row> {
    let (hogs, beside) = (point.hogs, if point.hogs == 1 { "hog" } else { "hogs" });
    let row = |what: &str, unit, value: f64| {
        Row::new(format!("{player}, {hogs} {beside}: {what}"), unit, Ok(vec![value]))
    };
    let shares = point.share.iter().map(|(role, share)| match role {
        Role::Player => row("player's share", "percent", *share),
        Role::Display => row("display's share", "percent", *share),
        Role::Hog => row("hogs' share", "percent", *share),
    });
    let others = row("others' share", "percent", point.others_percent);
    let migrations = row("migrations of the player", "1/s", point.migrations_a_second).note(loss(point.lost));
    let frames = point.frames_lost.map(|lost| row("frames lost", "percent", lost));
    shares.chain([others, migrations]).chain(frames).collect()
}

/// A curve for each player that has values.
fn series(curves: &[Curve], name: &str, of: impl Fn(&PlayerResult) -> Option<f64>) -> Vec<Series> {
    let series = curves.iter().map(|curve| {
        let points = curve.points.iter().filter_map(|point| Some((point.hogs as f64, of(point)?)));
        Series::new(format!("{}, {name}", curve.player), points)
    });
    series.filter(|series| !series.points.is_empty()).collect()
}

fn drawn(file: &str, title: &str, unit: &str, series: &[Series]) -> StudyFile {
    (file.to_owned(), plot::lines(title, &Axis::linear("hogs"), &Axis::linear(unit), series))
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
    use super::*;
    use mete_measure::Verdict;

    fn verdicts(points: &[(usize, f64, f64)]) -> Vec<Verdict> {
        let point = |&(hogs, lost, migrations_a_second)| PlayerResult {
            hogs,
            migrations_a_second,
            frames_lost: Some(lost),
            ..PlayerResult::default()
        };
        let curve = Curve { player: "decoder", points: points.iter().map(point).collect() };
        crate::study::verdicts(Migrations::findings(&vec![curve]))
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
