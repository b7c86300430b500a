//! A sleeper with ten hogs in its control group, beside five groups with a hog each, on one processor, under
//! sched_ext: by a policy inside the kernel, and by one outside it.

use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_plot::{self as plot, Axis};
use mete_shares::By;
use serde_json::{Value, json};

use super::latency::{DOMAINS, late, parts, series};
use super::stage::{Means, OfMeans, Run, Setting, median};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about};

const INSIDE: Means = Means::Dealt(By::SchedExt, "vtrr");
const OUTSIDE: Means = Means::Dealt(By::SchedExt, "distributed-vtrr-kernel");
const MEANS: [Means; 4] =
    [Means::Dealt(By::Cgroup, "vtrr"), INSIDE, OUTSIDE, Means::Dealt(By::SchedExt, "group-vtrr")];
/// How late the sleeper may be in the middle and at the 99th percentile, in microseconds, and what a share
/// may be off, in points.
const MOST_LATE_US: [f64; 2] = [600.0, 1100.0];
const MOST_POINTS: f64 = 0.5;

pub(crate) struct LiveExt;

impl Study for LiveExt {
    about!(
        "live-ext",
        "how late a sleeper runs among hogs under sched_ext: policies inside and outside the kernel"
    );
    type Found = Vec<OfMeans>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let (rounds, time) = if options.is_quick { (1, 3) } else { (3, 10) };
        let time = Duration::from_secs(time);
        let run = |means, progress: &dyn Progress| run(means, time, progress);
        let found = OfMeans::in_turns(&MEANS, rounds, report, progress, run);
        report.rows.extend(found.iter().flat_map(rows));
        found
    }

    fn findings(found: &Self::Found) -> Findings {
        let of = |means| OfMeans::find(found, means).and_then(finding);
        vec![("inside", of(INSIDE)), ("outside", of(OUTSIDE))]
    }

    fn facts(found: &Self::Found) -> Value {
        json!({ "lines": found.iter().map(line).collect::<Vec<_>>(), "others": DOMAINS - 1 })
    }

    fn pictures(found: &Self::Found) -> Vec<StudyFile> {
        let series: Vec<_> = found.iter().filter_map(series).collect();
        if series.is_empty() {
            return Vec::new();
        }
        let x = Axis::linear("percent of all wake-ups");
        let y = Axis::logarithmic("late by at most, µs");
        let title = "How late a sleeper runs among hogs, under sched_ext";
        vec![("late.svg".to_owned(), plot::lines(title, &x, &y, &series))]
    }
}

fn run(means: Means, time: Duration, progress: &dyn Progress) -> Result<Run, Reason> {
    Run::of(means, &Setting::of(&parts(), &[1; DOMAINS]), time, progress)
}

fn points(of_means: &OfMeans) -> Vec<f64> {
    of_means.points(&[1.0 / DOMAINS as f64; DOMAINS])
}

/// Decisions a second.
fn decisions(of_means: &OfMeans) -> Vec<f64> {
    of_means.each(|run| run.work.map(|work| work.decisions as f64 / run.seconds()))
}

/// What a decision took outside the kernel, in microseconds.
fn own_us(of_means: &OfMeans) -> Vec<f64> {
    of_means.each(|run| {
        let work = run.work.filter(|work| work.own_ns > 0 && work.decisions > 0)?;
        Some(work.own_ns as f64 / work.decisions as f64 / 1e3)
    })
}

fn rows(of_means: &OfMeans) -> Vec<Row> {
    let name = of_means.means.name();
    let all = [
        ("late, median", "µs", late(of_means, 500)),
        ("late, 99th percentile", "µs", late(of_means, 990)),
        ("worst error of a share", "points", points(of_means)),
        ("decisions a second", "", decisions(of_means)),
        ("own time for a decision", "µs", own_us(of_means)),
    ];
    let known = all.into_iter().filter(|(_, _, values)| !values.is_empty());
    known.map(|(what, unit, values)| Row::new(format!("{name}: {what}"), unit, Ok(values))).collect()
}

fn line(of_means: &OfMeans) -> Value {
    json!({
        "means": of_means.means.name(), "p50_us": median(&late(of_means, 500)),
        "p99_us": median(&late(of_means, 990)), "points": median(&points(of_means)),
        "decisions": median(&decisions(of_means)), "own_us": median(&own_us(of_means)),
    })
}

fn finding(of_means: &OfMeans) -> Option<Finding> {
    let (p50, p99) = (median(&late(of_means, 500))?, median(&late(of_means, 990))?);
    let points = points(of_means).into_iter().max_by(f64::total_cmp)?;
    let holds = p50 <= MOST_LATE_US[0] && p99 <= MOST_LATE_US[1] && points <= MOST_POINTS;
    Some(Finding::new(json!({ "p50": p50, "p99": p99, "points": points }), holds))
}
