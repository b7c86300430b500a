//! The page and the plots of the study `migrations`.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use super::migrations::{Curve, PlayerResult, Who};
use super::page;
use crate::study::figure::Figure;
use crate::study::{StudyResults, missing};
use mete_measure::report::Report;
use mete_plot::{self as plot, Axis, Series, short};

const FIGURE: &str = "KLogger fig. 6";
/// Percent of frames by which repeated runs differ in any case.
const UNSURE: f64 = 5.0;
/// Migrations a second by which repeated runs differ: two or three in a run.
const UNSURE_MOVES: f64 = 1.0;
/// Few hogs; then many, which are more than the processors have room for (§9.2: 4 to 7, and 10, with four processors).
const FEW: RangeInclusive<usize> = 1..=3;
const MANY: RangeInclusive<usize> = 6..=usize::MAX;

pub(super) fn study(report: Report, curves: &[Curve]) -> StudyResults {
    let figures = figures(curves, report.is_complete);
    let text = format!("{MEASURED}{}", compared(curves));
    let plots = ["share.svg", "frames.svg", "migrations.svg"];
    let page = page::of("A player beside hogs", &report, &figures, &text, &plots) + &table(curves);
    let shares = [("player", Who::Player), ("display", Who::Display), ("hogs", Who::Hog)];
    let share =
        shares.map(|(name, who)| series(curves, name, |point| point.share.get(&who).copied())).concat();
    let frames = series(curves, "frames lost", |point| point.frames_lost);
    let migrations = series(curves, "migrations", |point| Some(point.migrations));
    let files = vec![
        ("README.md".to_owned(), page),
        ("share.svg".to_owned(), plot("Processor share", "percent of all processors", &share)),
        ("frames.svg".to_owned(), plot("Frames lost", "percent", &frames)),
        ("migrations.svg".to_owned(), plot("Migrations of the player", "a second", &migrations)),
    ];
    StudyResults { folder: "migrations", report, figures, files }
}

pub(super) fn of_trace(report: Report) -> StudyResults {
    StudyResults { folder: "migrations", report, figures: Vec::new(), files: Vec::new() }
}

fn series(curves: &[Curve], name: &str, of: impl Fn(&PlayerResult) -> Option<f64>) -> Vec<Series> {
    curves
        .iter()
        .map(|curve| Series {
            name: format!("{}, {name}", curve.player),
            points: curve.points.iter().filter_map(|point| Some((point.hogs as f64, of(point)?))).collect(),
        })
        .filter(|series| !series.points.is_empty())
        .collect()
}

fn plot(title: &str, unit: &str, series: &[Series]) -> String {
    let axis = |label: &str| Axis { label: label.into(), is_logarithmic: false };
    plot::lines(title, &axis("hogs"), &axis(unit), series)
}

fn figures(curves: &[Curve], is_complete: bool) -> Vec<Figure> {
    let points = curves.iter().find(|curve| curve.player == "decoder").map(|curve| &curve.points[..]);
    let losses: Vec<_> =
        points.unwrap_or_default().iter().filter_map(|p| Some((p.hogs, p.frames_lost?))).collect();
    let others = points.unwrap_or_default().iter().map(|point| point.others).fold(0.0, f64::max);
    let all = [degrades(&losses, is_complete), turns(&losses, is_complete), followed(curves, is_complete)];
    all.map(|figure| page::unless_busy(figure, others)).into()
}

fn degrades(losses: &[(usize, f64)], is_complete: bool) -> Figure {
    let paper = "a player loses more frames the more hogs there are";
    let (Some((_, first)), Some((hogs, last))) = (losses.first(), losses.last()) else {
        return Figure::missing(FIGURE, paper, missing(is_complete));
    };
    let ours = format!("{} % without hogs, {} % beside {hogs}", short(*first), short(*last));
    Figure::new(FIGURE, paper, ours, *last > first + UNSURE)
}

fn turns(losses: &[(usize, f64)], is_complete: bool) -> Figure {
    let paper = "not steadily: more load (ten hogs of four processors) can improve it again";
    if losses.len() < 2 {
        return Figure::missing(FIGURE, paper, missing(is_complete));
    }
    let better: Vec<_> = losses.windows(2).filter(|pair| pair[1].1 + UNSURE < pair[0].1).collect();
    let ours = match better[..] {
        [] => format!("no number of hogs is better than a smaller one by more than {UNSURE} %"),
        [pair, ..] => {
            let ((few, worse), (many, less)) = (pair[0], pair[1]);
            format!("{few} hogs {} %, {many} hogs {} %", short(worse), short(less))
        }
    };
    Figure::new(FIGURE, paper, ours, !better.is_empty())
}

/// The statement holds if, beside each of the larger numbers of hogs, there are less than half as many migrations as
/// beside few hogs.
fn followed(curves: &[Curve], is_complete: bool) -> Figure {
    let paper =
        "with few hogs the scheduler moves player and display; beside many it leaves them where they are";
    let points = curves.first().map(|curve| &curve.points[..]).unwrap_or_default();
    let most_of = |hogs: RangeInclusive<usize>| {
        let of = points.iter().filter(|point| hogs.contains(&point.hogs)).map(|point| point.migrations);
        of.reduce(f64::max)
    };
    let (Some(few), Some(many)) = (most_of(FEW), most_of(MANY)) else {
        return Figure::missing(FIGURE, paper, missing(is_complete));
    };
    let ours = format!(
        "up to {} a second beside one to three hogs, up to {} beside six and more",
        short(few),
        short(many)
    );
    Figure::new(FIGURE, paper, ours, few > 2.0 * many + UNSURE_MOVES)
}

const MEASURED: &str = "\
A player and a growing number of hogs are equals in one session, as were Xine, the X server and the paper's stressors. The \
decoder is a task of this program that is like a player and plays nothing: one process computes for 18 ms for each of 25 frames \
a second, another one, which the first wakes, for 9 ms to show it; a frame is lost that is not shown when the next one is \
due. ffmpeg, where it is installed, decodes an MPEG2 clip of 1280 by 720 at the rate of its frames and does not say what \
it would have lost. Shares are sums of the recorded runs; a migration is a run on another processor than the process's \
last.\n\n";

fn compared(curves: &[Curve]) -> String {
    let of = |hogs: usize, of: &dyn Fn(&PlayerResult) -> Option<f64>| {
        let points = curves.first().map(|curve| &curve.points[..]).unwrap_or_default();
        let found = points.iter().find(|point| point.hogs == hogs).and_then(of);
        found.map_or_else(|| "(not measured)".to_owned(), short)
    };
    let lost = |hogs| of(hogs, &|point| point.frames_lost);
    let share = |hogs| of(hogs, &|point| point.share.get(&Who::Player).copied());
    format!(
        "The paper's machine had four processors and a scheduler that guessed who is interactive and moved processes \
         by how much each run queue had to do: three hogs made it put player and X server on one processor, ten helped them \
         apart. The figure's bends belong to that number of processors and to that scheduler. Here the decoder loses \
         {none} % of its frames alone, {two} % beside two hogs and {ten} % beside ten, with {share_none}, {share_two} and \
         {share_ten} % of all processors: today's scheduler gives each of the equals its share and no bonus, and so \
         the player's share falls as the hogs get more, once there is no processor left for it. Runs of some seconds differ \
         by a few frames and a few migrations; that is why five percent of frames more or less say nothing here, and \
         migrations count as fewer only where they are less than half as many, by one a second besides.\n\n",
        none = lost(0),
        two = lost(2),
        ten = lost(10),
        share_none = share(0),
        share_two = share(2),
        share_ten = share(10),
    )
}

fn table(curves: &[Curve]) -> String {
    let mut text = String::from(
        "\n| player | hogs | player, % | display, % | hogs, % | others, % | migrations a second | frames lost, % |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for curve in curves {
        for point in &curve.points {
            let [player, display, hogs] = [Who::Player, Who::Display, Who::Hog]
                .map(|who| point.share.get(&who).copied().map(short).unwrap_or_default());
            let lost = point.frames_lost.map(short).unwrap_or_default();
            let (name, number, others) = (curve.player, point.hogs, short(point.others));
            let moved = short(point.migrations);
            let _ = writeln!(
                text,
                "| {name} | {number} | {player} | {display} | {hogs} | {others} | {moved} | {lost} |"
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::study::figure::Verdict;

    fn verdicts(points: &[(usize, f64, f64)]) -> Vec<Verdict> {
        let point = |&(hogs, lost, migrations)| PlayerResult {
            hogs,
            share: BTreeMap::new(),
            others: 0.0,
            migrations,
            frames_lost: Some(lost),
            lost: 0,
        };
        let curve = Curve { player: "decoder", points: points.iter().map(point).collect() };
        figures(&[curve], true).iter().map(|figure| figure.verdict).collect()
    }

    #[test]
    fn klog_9_a_player_as_in_the_paper_agrees_and_one_that_just_gets_less_differs() {
        let papers = [(0, 0.0, 1.0), (3, 60.0, 30.0), (7, 40.0, 5.0), (10, 30.0, 4.0)];
        assert_eq!(verdicts(&papers), [Verdict::Agrees; 3]);
        let steady = [(0, 0.0, 1.0), (3, 40.0, 1.0), (7, 60.0, 5.0), (10, 80.0, 9.0)];
        assert_eq!(verdicts(&steady), [Verdict::Agrees, Verdict::Differs, Verdict::Differs]);
        assert_eq!(verdicts(&[]), [Verdict::NotMeasured; 3]);
    }

    #[test]
    fn klog_9_migrations_become_fewer_only_by_more_than_runs_differ_and_for_good() {
        let followed = |migrations: [f64; 5]| {
            let points: Vec<_> =
                [1, 2, 3, 6, 10].into_iter().zip(migrations).map(|(hogs, of)| (hogs, 0.0, of)).collect();
            verdicts(&points)[2]
        };
        assert_eq!(followed([2.0, 30.0, 4.0, 6.0, 4.0]), Verdict::Agrees);
        assert_eq!(followed([4.0; 5]), Verdict::Differs, "as many as before");
        assert_eq!(followed([4.2, 3.0, 2.0, 1.7, 1.7]), Verdict::Differs, "half as many, but for the margin");
        assert_eq!(followed([0.8, 0.0, 0.0, 0.0, 0.0]), Verdict::Differs, "one migration is none");
        assert_eq!(followed([30.0, 4.0, 4.0, 20.0, 1.0]), Verdict::Differs, "they come back");
        assert_eq!(verdicts(&[(0, 0.0, 1.0), (3, 0.0, 9.0)])[2], Verdict::NotMeasured);
    }
}
