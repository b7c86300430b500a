//! A sleeper with ten hogs in its domain, beside five domains with a hog each, on one processor: how late it
//! runs, and what its domain has.

use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_plot::{self as plot, Axis, Series};
use serde_json::{Value, json};

use super::stage::member::Role;
use super::stage::{Means, OfMeans, Part, Run, Setting, median};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about};

pub(crate) const DOMAINS: usize = 6;
/// Hogs in the sleeper's domain.
const BESIDE: usize = 10;
const MEANS: [Means; 3] =
    [Means::Kernel, Means::Dispatcher("group-vtrr"), Means::Dispatcher("distributed-vtrr")];

pub(crate) struct LiveLatency;

impl Study for LiveLatency {
    about!("live-latency", "how late a sleeper runs among hogs: dispatched by shares alone, and with TAVS");
    type Found = Vec<OfMeans>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let (rounds, time) = if options.is_quick { (2, 2) } else { (5, 10) };
        let time = Duration::from_secs(time);
        let found =
            OfMeans::in_turns(&MEANS, rounds, report, progress, |means, progress| run(means, time, progress));
        report.rows.extend(found.iter().flat_map(rows));
        found
    }

    fn findings(found: &Self::Found) -> Findings {
        let pair = OfMeans::find(found, MEANS[1]).zip(OfMeans::find(found, MEANS[2]));
        vec![
            ("sooner", pair.and_then(|(alone, tavs)| sooner(alone, tavs))),
            ("shares", OfMeans::find(found, MEANS[2]).and_then(shares)),
        ]
    }

    fn facts(found: &Self::Found) -> Value {
        let lines = found.iter().map(line);
        json!({ "lines": lines.collect::<Vec<_>>(), "beside": BESIDE, "others": DOMAINS - 1 })
    }

    fn pictures(found: &Self::Found) -> Vec<StudyFile> {
        let series: Vec<_> = found.iter().filter_map(series).collect();
        if series.is_empty() {
            return Vec::new();
        }
        let x = Axis::linear("percent of all wake-ups");
        let y = Axis::logarithmic("late by at most, µs");
        vec![("late.svg".to_owned(), plot::lines("How late a sleeper runs among hogs", &x, &y, &series))]
    }
}

fn run(means: Means, time: Duration, progress: &dyn Progress) -> Result<Run, Reason> {
    Run::of(means, &Setting::of(&parts(), &[1; DOMAINS]), time, progress)
}

/// The sleeper, the hogs in its domain, and a hog in each other domain.
pub(crate) fn parts() -> Vec<Part> {
    let hog = |domain| Part { role: Role::Hog, domain };
    let sleeper = Part { role: Role::Sleeper, domain: 0 };
    let beside = std::iter::repeat_n(hog(0), BESIDE);
    std::iter::once(sleeper).chain(beside).chain((1..DOMAINS).map(hog)).collect()
}

pub(crate) fn late(of_means: &OfMeans, permille: usize) -> Vec<f64> {
    of_means.each(|run| run.late_us(permille))
}

/// The kernel's own scheduler was told of no domains, so nothing is measured against these.
fn points(of_means: &OfMeans) -> Vec<f64> {
    if of_means.means == Means::Kernel {
        return Vec::new();
    }
    of_means.points(&[1.0 / DOMAINS as f64; DOMAINS])
}

fn rows(of_means: &OfMeans) -> Vec<Row> {
    let name = of_means.means.name();
    let mut rows = vec![
        Row::new(format!("{name}: late, median"), "µs", Ok(late(of_means, 500))),
        Row::new(format!("{name}: late, 99th percentile"), "µs", Ok(late(of_means, 990))),
    ];
    let points = points(of_means);
    if !points.is_empty() {
        rows.push(Row::new(format!("{name}: worst error of a share"), "points", Ok(points)));
    }
    rows
}

fn line(of_means: &OfMeans) -> Value {
    json!({
        "means": of_means.means.name(), "p50_us": median(&late(of_means, 500)),
        "p99_us": median(&late(of_means, 990)), "points": median(&points(of_means)),
    })
}

/// The percentiles of how late the sleeper was.
pub(crate) fn series(of_means: &OfMeans) -> Option<Series> {
    let mut late: Vec<f64> = of_means.runs.iter().flat_map(|run| run.late_us.iter().copied()).collect();
    late.sort_by(f64::total_cmp);
    let last = late.len().checked_sub(1)?;
    let points = (0..=100).map(|percent| (percent as f64, late[last * percent / 100].max(1.0)));
    Some(Series::new(of_means.means.name(), points.collect::<Vec<_>>()))
}

fn sooner(alone: &OfMeans, tavs: &OfMeans) -> Option<Finding> {
    let at = |permille| Some([median(&late(alone, permille))?, median(&late(tavs, permille))?]);
    let ([alone_50, tavs_50], [alone_99, tavs_99]) = (at(500)?, at(990)?);
    let values = json!({
        "alone_50": alone_50, "tavs_50": tavs_50, "alone_99": alone_99, "tavs_99": tavs_99,
        "times_50": alone_50 / tavs_50, "times_99": alone_99 / tavs_99,
    });
    Some(Finding::new(values, alone_50 >= 10.0 * tavs_50 && alone_99 >= 10.0 * tavs_99))
}

fn shares(tavs: &OfMeans) -> Option<Finding> {
    let points = points(tavs).into_iter().max_by(f64::total_cmp)?;
    Some(Finding::new(json!({ "points": points }), points <= 2.0))
}
