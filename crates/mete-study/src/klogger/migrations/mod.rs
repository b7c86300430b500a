//! Migrations and processor share of a player beside a growing number of hogs (KLogger paper, §9.2, figure 6).

mod findings;
mod player;
mod run;

use std::cmp::Reverse;
use std::path::Path;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_plot::{self as plot, Axis, Series};
use mete_trace::ProcessNames;
use serde::Serialize;
use serde_json::{Value, json};

use self::run::{EVENTS, Measure, PLAYERS, PlayerResult, Role};
use super::of_trace::{self, loss};
use crate::study::{Findings, Study, StudyFile, StudyOptions, StudyResults, about};
use crate::trace::{Runs, Usage};

/// The numbers of hogs beside the player. The paper's largest one is ten.
const HOGS: [usize; 8] = [0, 1, 2, 3, 4, 6, 8, 10];
/// How long each number is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_millis(2_400), Duration::from_millis(600)];
/// The number of processes that are shown of a recorded trace: those that used the processors most.
const SHOWN: usize = 12;

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
        let curves = PLAYERS.map(|(player, measure)| Curve {
            player,
            points: points(player, measure, time, report, progress),
        });
        curves.into()
    }

    fn findings(curves: &Self::Found) -> Findings {
        findings::of(curves)
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

/// Measures one player over the numbers of hogs.
fn points(
    player: &str,
    measure: Measure,
    time: Duration,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Vec<PlayerResult> {
    let mut points = Vec::new();
    progress.begin(player, HOGS.len() as u64);
    for hogs in HOGS {
        if progress.is_cancelled() {
            break;
        }
        match measure(hogs, time, progress) {
            Ok(point) => {
                report.rows.extend(rows(player, &point));
                points.push(point);
            }
            Err(reason) => {
                // The same reason would hold for every other number.
                report.rows.push(Row::new(format!("{player}: all rows"), "percent", Err(reason)));
                break;
            }
        }
        progress.step();
    }
    points
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
