//! The pictures of spinning on locks.

use std::collections::BTreeMap;

use mete_plot::{self as plot, Axis, Series};

use super::waited::Curve;
use crate::study::StudyFile;

/// The number of locks that a picture shows.
const SHOWN: usize = 6;

/// Spinning under all loads, then lock by lock under each load that was measured.
pub(super) fn of(curves: &[Curve]) -> Vec<StudyFile> {
    let measured = curves.iter().filter(|curve| !curve.points.is_empty());
    let by_lock = measured.map(|curve| (format!("{}.svg", curve.load.replace(' ', "-")), by_lock(curve)));
    std::iter::once(("spinning.svg".to_owned(), spinning(curves))).chain(by_lock).collect()
}

fn percent() -> Axis {
    Axis { label: "percent of all processors' time".into(), is_logarithmic: false }
}

fn spinning(curves: &[Curve]) -> String {
    let series: Vec<_> = curves.iter().map(series).collect();
    let x = Axis { label: "at once".into(), is_logarithmic: true };
    plot::lines("Spinning on the kernel's locks", &x, &percent(), &series)
}

fn series(curve: &Curve) -> Series {
    let points = curve.points.iter().map(|(parallel, waited)| (*parallel as f64, waited.spinning));
    Series { name: curve.load.to_owned(), points: points.collect() }
}

fn by_lock(curve: &Curve) -> String {
    let groups: Vec<String> = curve.points.iter().map(|(parallel, _)| parallel.to_string()).collect();
    let locks = most(curve).into_iter().map(|lock| (lock.to_owned(), percents(curve, lock)));
    let title = format!("Spinning by lock: {}, so many at once", curve.load);
    plot::bars(&title, &percent(), &groups, &locks.collect::<Vec<_>>())
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

/// The spinning on one lock in each point.
fn percents(curve: &Curve, lock: &str) -> Vec<f64> {
    curve.points.iter().map(|(_, waited)| waited.by_lock.get(lock).copied().unwrap_or_default()).collect()
}
