//! The pictures of how long iterations take.

use mete_plot::{self as plot, Axis, Series};

use super::lengths::Lengths;
use crate::klogger::cdf::Distribution;
use crate::study::StudyFile;

/// Where the head of the distribution ends and its tail begins, in percent.
const HEAD: f64 = 2.0;
const TAIL: f64 = 98.0;
const TAKE_NO_LONGER: &str = "percent that take no longer";
/// The least percentage that the plot of the tail shows.
const LEAST: f64 = 0.015;

/// The curves as the folder keeps them: first each whole curve, then its tail once more with more points.
pub(super) fn curves(lengths: &Lengths) -> Vec<Series> {
    let Lengths { noisy, without_timer, clean, alone, .. } = lengths;
    let all = [
        ("noisy", noisy),
        ("without the timer", without_timer),
        ("clean", clean),
        ("clean and alone", alone),
    ];
    [all.map(|(name, of)| of.series(name)), all.map(|(name, of)| tail(name, of))].concat()
}

/// The tail of a distribution, with more points than the whole curve has there.
fn tail(name: &str, of: &Distribution) -> Series {
    let percents = (0..=200).map(|nth| TAIL + (100.0 - TAIL) * f64::from(nth) / 200.0);
    let points = percents.filter_map(|percent| Some((of.quantile(percent / 100.0)?, percent)));
    Series { name: format!("{name}, tail"), points: points.collect() }
}

/// The pictures of the curves that [`curves`] gives. None without curves.
pub(super) fn of(curves: &[Series]) -> Vec<StudyFile> {
    if curves.is_empty() {
        return Vec::new();
    }
    let (whole, tails) = curves.split_at(curves.len() / 2);
    let most = up_to(whole, TAIL);
    let shown = |title, series: &[Series]| plot::lines_on_one_another(title, "us", &no_longer(), series);
    let pictures = [
        ("noise.svg", shown("How long an iteration takes: all but the slowest two percent", &most)),
        ("head.svg", shown("Its fastest two percent", &up_to(whole, HEAD))),
        ("tail.svg", slowest(tails)),
        ("taken-off.svg", taken_off(&most)),
    ];
    pictures.map(|(name, text)| (name.to_owned(), text)).into()
}

/// What interrupts take of each millisecond, processor by processor.
pub(super) fn of_trace(series: &[Series]) -> StudyFile {
    let across = Axis::logarithmic("us");
    let plot = plot::lines("How much of a millisecond interrupts take", &across, &no_longer(), series);
    ("noise.svg".to_owned(), plot)
}

fn no_longer() -> Axis {
    Axis::linear(TAKE_NO_LONGER)
}

/// The parts of curves up to a percentage.
fn up_to(series: &[Series], most: f64) -> Vec<Series> {
    let mut parts = series.to_vec();
    parts.iter_mut().for_each(|part| part.points.retain(|(_, percent)| *percent <= most));
    parts
}

fn slowest(tails: &[Series]) -> String {
    let up = Axis::logarithmic("percent that take longer");
    let tails: Vec<_> = tails.iter().map(longer).collect();
    plot::lines_on_one_another("Its slowest two percent", "us", &up, &tails)
}

/// The percentages of a tail that take longer. No iteration takes longer than the longest one, and the
/// logarithm of zero does not exist.
fn longer(of: &Series) -> Series {
    let tail = of.points.iter().filter(|(_, percent)| *percent >= TAIL);
    Series::new(
        of.name.clone(),
        tail.map(|(us, percent)| (*us, 100.0 - percent)).filter(|(_, longer)| *longer > LEAST),
    )
}

/// The distance of each curve from the first one, which is zero everywhere. It shows the difference of curves
/// that otherwise look like one.
fn taken_off(series: &[Series]) -> String {
    let up = Axis::linear("us less than with all of it");
    let less: Vec<_> = series.iter().map(|of| less(&series[0], of)).collect();
    plot::lines_on_one_another("What is taken off, by the length of an iteration", TAKE_NO_LONGER, &up, &less)
}

fn less(whole: &Series, of: &Series) -> Series {
    Series::new(
        of.name.clone(),
        whole.points.iter().filter_map(|&(us, percent)| Some((percent, us - us_at(of, percent)?))),
    )
}

/// The microseconds of a curve at that percentage, if the curve has a point there.
fn us_at(series: &Series, percent: f64) -> Option<f64> {
    // Percentages are computed, so equal ones may differ in their last digits.
    series.points.iter().find(|(_, at)| (at - percent).abs() < 1e-6).map(|(us, _)| *us)
}
