//! What waiting for the kernel's locks costs, against parallelism (KLogger paper, §8, figures 2 to 4).

mod findings;
mod load;
mod network;
mod waited;
mod web;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use mete_base::csv;
use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_plot::{self as plot, Axis, Series};
use mete_trace::Symbols;
use serde_json::{Value, json};

use self::load::LOADS;
use self::waited::{Curve, Waited, Watched};
use super::of_trace::{self, loss};
use crate::study::{Findings, Study, StudyFile, StudyOptions, StudyResults, about, measure_until_failure};
use crate::trace::LOCKING;

/// The paper's degrees of parallelism.
const PARALLEL: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// How long each degree is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_millis(1_000), Duration::from_millis(300)];
/// The degrees of parallelism that the page's text compares with the paper's.
const COMPARED: [usize; 2] = [4, 32];
/// The number of locks that the page's table names.
const TABLED: usize = 3;
/// The number of locks that a picture shows.
const SHOWN: usize = 6;
/// What the pictures show.
const SPINNING: &str = "percent of all processors' time";

pub(crate) struct Locks;

impl Study for Locks {
    about!(
        "locks",
        "what waiting for the kernel's locks costs, lock by lock, against parallelism (KLogger figures 2 to 4)"
    );
    type Found = Vec<Curve>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let time = WATCHED[usize::from(options.is_quick)];
        let symbols = Symbols::of_kernel();
        let curves = LOADS.map(|load| {
            let (name, degrees) = (load.name, PARALLEL.into_iter());
            let points = measure_until_failure(name, degrees, report, progress, |parallel, progress| {
                let waited = load.measure(parallel, time, &symbols, progress);
                (rows_of_point(name, parallel, &waited), waited.ok().map(|waited| (parallel, waited)))
            });
            Curve { load: name, points }
        });
        curves.into()
    }

    fn findings(curves: &Self::Found) -> Findings {
        findings::of(curves)
    }

    fn facts(curves: &Self::Found) -> Value {
        let all =
            curves.iter().flat_map(|curve| curve.points.iter().map(|point| point_facts(curve.load, point)));
        let [make, network, web_server] = LOADS.map(|load| compared(curves, load.name));
        let points: Vec<_> = all.collect();
        json!({ "make": make, "network": network, "web_server": web_server, "points": points })
    }

    /// Spinning under all loads, then lock by lock under each load that was measured.
    fn pictures(curves: &Self::Found) -> Vec<StudyFile> {
        let measured = curves.iter().filter(|curve| !curve.points.is_empty());
        let by_lock = measured.map(|curve| (format!("{}.svg", curve.load.replace(' ', "-")), by_lock(curve)));
        std::iter::once(("spinning.svg".to_owned(), spinning(curves))).chain(by_lock).collect()
    }

    fn data(curves: &Self::Found, _: &Report) -> Vec<StudyFile> {
        vec![("by-lock.csv".to_owned(), csv(curves))]
    }
}

fn rows_of_point(load: &str, parallel: usize, waited: &Result<Waited, Reason>) -> Vec<Row> {
    let name = format!("{load}, {parallel} at once");
    match waited {
        Ok(waited) => {
            let others =
                Row::new(format!("{name}: others' share before"), "percent", Ok(vec![waited.others]));
            [rows(&name, waited), vec![others.note("of all processors")]].concat()
        }
        Err(reason) => vec![Row::new(format!("{load}: all rows"), "percent", Err(reason.clone()))],
    }
}

fn rows(name: &str, waited: &Waited) -> Vec<Row> {
    let mut rows = vec![
        Row::new(format!("{name}: spinning on locks"), "percent", Ok(vec![waited.spinning]))
            .note("of all processors' time")
            .note(loss(waited.lost)),
        Row::new(format!("{name}: waits for locks"), "1/s", Ok(vec![waited.waits]))
            .note("spinning and sleeping"),
    ];
    if !waited.spun_ns.is_empty() {
        rows.push(Row::new(format!("{name}: a wait that spins"), "ns", Ok(waited.spun_ns.clone())));
    }
    rows
}

/// Percent of all processors' time that was spent spinning with the numbers of processes that are
/// [`COMPARED`].
fn compared(curves: &[Curve], load: &str) -> [Option<f64>; 2] {
    let curve = curves.iter().find(|curve| curve.load == load);
    COMPARED.map(|parallel| Some(curve?.at(parallel)?.spinning))
}

/// A line of the table: one load with one degree of parallelism.
fn point_facts(load: &str, (at_once, waited): &(usize, Waited)) -> Value {
    let locks = waited.most().into_iter().take(TABLED);
    let locks: Vec<_> = locks.map(|(lock, percent)| json!({ "lock": lock, "percent": percent })).collect();
    let Waited { spinning, waits, .. } = waited;
    json!({ "load": load, "at_once": at_once, "spinning": spinning, "waits": waits, "locks": locks })
}

fn csv(curves: &[Curve]) -> String {
    let points = curves.iter().flat_map(|curve| curve.points.iter().map(|point| (curve.load, point)));
    let lines = points.flat_map(|(load, (parallel, waited))| {
        let locks = waited.by_lock.iter();
        locks.map(move |(lock, percent)| format!("{load},{parallel},{},{percent:.6}\n", csv::field(lock)))
    });
    String::from("load,at_once,lock,percent\n") + &lines.collect::<String>()
}

/// The study of a recorded trace.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = of_trace::open(directory, "locking", &LOCKING)?;
    let watched = Watched {
        when: 0..=u64::MAX,
        passed: Duration::from_nanos(recorded.duration_ns()),
        processors: recorded.processors(),
    };
    let waited = Waited::of(&recorded, &watched, &Symbols::of_kernel());
    let by_lock = waited
        .most()
        .into_iter()
        .map(|(lock, percent)| Row::new(format!("locks: spinning on {lock}"), "percent", Ok(vec![percent])));
    let rows = rows("locks", &waited).into_iter().chain(by_lock).collect();
    Ok(of_trace::results::<Locks>(directory, rows, Vec::new()))
}

fn spinning(curves: &[Curve]) -> String {
    let series = curves.iter().map(|curve| {
        let points = curve.points.iter().map(|(parallel, waited)| (*parallel as f64, waited.spinning));
        Series::new(curve.load, points)
    });
    let (x, y) = (Axis::logarithmic("at once"), Axis::linear(SPINNING));
    plot::lines("Spinning on the kernel's locks", &x, &y, &series.collect::<Vec<_>>())
}

fn by_lock(curve: &Curve) -> String {
    let groups: Vec<String> = curve.points.iter().map(|(parallel, _)| parallel.to_string()).collect();
    let locks = most(curve).into_iter().map(|lock| {
        let percents = curve.points.iter().map(|(_, waited)| waited.by_lock.get(lock).copied());
        (lock.to_owned(), percents.map(Option::unwrap_or_default).collect())
    });
    let title = format!("Spinning by lock: {}, so many at once", curve.load);
    plot::bars(&title, &Axis::linear(SPINNING), &groups, &locks.collect::<Vec<_>>())
}

/// The locks on which tasks spun longest in all points.
fn most(curve: &Curve) -> Vec<&str> {
    let mut all: BTreeMap<&str, f64> = BTreeMap::new();
    for (lock, percent) in curve.points.iter().flat_map(|(_, waited)| &waited.by_lock) {
        *all.entry(lock).or_default() += percent;
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|one, other| other.1.total_cmp(&one.1));
    all.into_iter().take(SHOWN).map(|(lock, _)| lock).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_a_load_that_is_missing_is_one_row_that_says_so() {
        let rows = rows_of_point("web server", 1, &Err(Reason::new("nginx is not installed")));
        assert_eq!((rows.len(), rows[0].note.as_str()), (1, "nginx is not installed"));
    }
}
