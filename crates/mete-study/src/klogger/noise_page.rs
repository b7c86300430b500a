//! The page and the plots of the study `noise`.

use std::ops::RangeInclusive;

use super::cdf::{self, Distribution};
use super::noise::Noise;
use super::page;
use crate::study::figure::Figure;
use crate::study::{StudyResults, missing};
use crate::trace::InterruptKind;
use mete_measure::report::Report;
use mete_plot::{self as plot, Axis, Series, short};

const FIGURE_8: &str = "KLogger fig. 8";
/// Where the head of the distribution ends and its tail begins, in percent.
const HEAD: f64 = 2.0;
const TAIL: f64 = 98.0;
const TAKE_NO_LONGER: &str = "percent that take no longer";
/// The least percentage that the plot of the tail shows.
const LEAST: f64 = 0.015;

pub(super) fn study(report: Report, noise: Option<&Noise>) -> StudyResults {
    let figures = figures(noise, report.is_complete);
    let text = format!("{MEASURED}{}", compared(noise));
    let plots = ["noise.svg", "head.svg", "tail.svg", "taken-off.svg"];
    let page = page::of("Noise of a loop of one millisecond", &report, &figures, &text, &plots);
    let files = [vec![("README.md".to_owned(), page)], noise.map(files).unwrap_or_default()].concat();
    StudyResults { folder: "noise", report, figures, files }
}

pub(super) fn of_trace(report: Report, curves: &[(String, Distribution)]) -> StudyResults {
    let series: Vec<Series> = curves.iter().map(|(name, us)| us.series(name)).collect();
    let across = Axis { label: "us".into(), is_logarithmic: true };
    let up = Axis { label: TAKE_NO_LONGER.into(), is_logarithmic: false };
    let plot = plot::lines("How much of a millisecond interrupts take", &across, &up, &series);
    let files =
        vec![("noise.svg".to_owned(), plot), ("distribution.csv".to_owned(), cdf::csv(&series, "us"))];
    StudyResults { folder: "noise", report, figures: Vec::new(), files }
}

fn files(noise: &Noise) -> Vec<(String, String)> {
    let curves = [
        ("noisy", &noise.noisy),
        ("without the timer", &noise.without_timer),
        ("clean", &noise.clean),
        ("clean and alone", &noise.alone),
    ];
    let series: Vec<Series> = curves.map(|(name, of)| of.series(name)).into();
    let fine: Vec<Series> = curves.map(|(name, of)| ends(name, of)).into();
    let mut files = pictures(&series, &fine);
    files.push(("distribution.csv".to_owned(), cdf::csv(&[series, fine].concat(), "us")));
    files
}

/// The plots from the curves as they are kept: first each whole curve, then its ends once more with more points.
pub(crate) fn drawn(kept: &[Series]) -> Vec<(String, String)> {
    let (series, fine) = kept.split_at(kept.len() / 2);
    pictures(series, fine)
}

fn pictures(series: &[Series], fine: &[Series]) -> Vec<(String, String)> {
    let part = |is_in: fn(f64) -> bool| -> Vec<Series> {
        series
            .iter()
            .map(|of| Series {
                name: of.name.clone(),
                points: of.points.iter().copied().filter(|(_, percent)| is_in(*percent)).collect(),
            })
            .collect()
    };
    let longer = |of: &Series| Series {
        name: of.name.clone(),
        // No iteration takes longer than the longest one, and the logarithm of zero does not exist.
        points: of
            .points
            .iter()
            .map(|(us, percent)| (*us, 100.0 - percent))
            .filter(|(_, of)| *of > LEAST)
            .collect(),
    };
    let tail: Vec<Series> = fine.iter().map(|of| longer(&after(of, TAIL))).collect();
    let up = Axis { label: "percent that take longer".into(), is_logarithmic: true };
    vec![
        (
            "noise.svg".to_owned(),
            plot(
                "How long an iteration takes: all but the slowest two percent",
                &part(|percent| percent <= TAIL),
            ),
        ),
        ("head.svg".to_owned(), plot("Its fastest two percent", &part(|percent| percent <= HEAD))),
        ("tail.svg".to_owned(), plot::lines_on_one_another("Its slowest two percent", "us", &up, &tail)),
        ("taken-off.svg".to_owned(), taken_off(&part(|percent| percent <= TAIL))),
    ]
}

/// The microseconds of a curve at that percentage, if the curve has a point there.
fn us_at(series: &Series, percent: f64) -> Option<f64> {
    // Percentages are computed, so equal ones may differ in their last digits.
    series.points.iter().find(|(_, at)| (at - percent).abs() < 1e-6).map(|(us, _)| *us)
}

/// The distance of each curve from the first one, which is zero everywhere. It shows the difference of curves that
/// otherwise look like one.
fn taken_off(series: &[Series]) -> String {
    let Some(whole) = series.first() else { return String::new() };

    let less = |of: &Series| Series {
        name: of.name.clone(),
        points: whole
            .points
            .iter()
            .filter_map(|&(us, percent)| Some((percent, us - us_at(of, percent)?)))
            .collect(),
    };
    let up = Axis { label: "us less than with all of it".into(), is_logarithmic: false };
    let less: Vec<_> = series.iter().map(less).collect();
    plot::lines_on_one_another("What is taken off, by the length of an iteration", TAKE_NO_LONGER, &up, &less)
}

/// The tail of a distribution, with more points than the whole curve has there.
fn ends(name: &str, of: &Distribution) -> Series {
    let percents = (0..=200).map(|nth| TAIL + (100.0 - TAIL) * f64::from(nth) / 200.0);
    let points = percents.filter_map(|percent| Some((of.quantile(percent / 100.0)?, percent)));
    Series { name: format!("{name}, tail"), points: points.collect() }
}

fn after(of: &Series, percent: f64) -> Series {
    Series {
        name: of.name.clone(),
        points: of.points.iter().copied().filter(|(_, at)| *at >= percent).collect(),
    }
}

fn plot(title: &str, series: &[Series]) -> String {
    let up = Axis { label: TAKE_NO_LONGER.into(), is_logarithmic: false };
    plot::lines_on_one_another(title, "us", &up, series)
}

/// From the first to the 99th percentile, in percent of the median.
pub(super) fn spread(of: &Distribution) -> Option<f64> {
    let [low, half, high] = [0.01, 0.5, 0.99].map(|part| of.quantile(part));
    Some(100.0 * (high? - low?) / half?)
}

fn figures(noise: Option<&Noise>, is_complete: bool) -> Vec<Figure> {
    let why = missing(is_complete);
    let others = noise.map_or(0.0, |noise| noise.others);
    vec![
        page::unless_busy(range(noise, why), others),
        page::unless_busy(direct(noise, why), others),
        Figure::missing(
            FIGURE_8,
            "what is left of the noise without interrupts is cache misses",
            "needs hardware performance counters",
        ),
        Figure::missing(
            "KLogger fig. 9",
            "a timer of 1000 Hz causes far more cache misses than one of 100 Hz",
            "needs hardware performance counters, and kernels with either timer",
        ),
        Figure::missing(
            "KLogger fig. 10",
            "with caches disabled, taking off the direct overhead leaves equal iterations",
            "no program can switch the caches off here",
        ),
    ]
}

fn range(noise: Option<&Noise>, why: &str) -> Figure {
    let paper = "one piece of code takes from 0.78 to 1.96 of what it should: a factor of 2.5";
    let range = noise.and_then(|noise| Some((noise.noisy.quantile(0.0)?, noise.noisy.quantile(1.0)?)));
    let Some((least, most)) = range else { return Figure::missing(FIGURE_8, paper, why) };
    let ours = format!("{} to {} us, a factor of {}", short(least), short(most), short(most / least));
    Figure::new(FIGURE_8, paper, ours, most >= 2.0 * least)
}

/// The range of quotients that counts as unaffected by the direct overhead: a tenth in both directions.
const UNAFFECTED: RangeInclusive<f64> = 0.9..=1.1;

fn direct(noise: Option<&Noise>, why: &str) -> Figure {
    let paper = "taking off the direct overhead of interrupts does not affect the noise";
    let spreads = noise.and_then(|noise| Some((spread(&noise.noisy)?, spread(&noise.clean)?)));
    // Without variation there is no noise that could be reduced.
    let Some((noisy, clean)) = spreads.filter(|(noisy, _)| *noisy > 0.0) else {
        return Figure::missing(FIGURE_8, paper, why);
    };
    let left = clean / noisy;
    let ours = format!(
        "from the 1st to the 99th percentile {} % of the median, {} % without interrupts: {} % of it is left",
        short(noisy),
        short(clean),
        short(100.0 * left)
    );
    Figure::new(FIGURE_8, paper, ours, UNAFFECTED.contains(&left))
}

const MEASURED: &str = "\
A loop that reads a number from the stack, adds one and writes it back is calibrated to take a millisecond where nothing \
disturbs it, and repeated at a real-time priority above the recorder's own threads on one processor: 200 iterations at a \
stretch, then a pause, so that nobody starves, with a watchdog of higher priority (the paper's ran a million in a row). Each \
iteration reads CLOCK_MONOTONIC before and after; the interrupt schema's records have the same clock, so that the time of \
each interrupt is taken off the iteration that it lies in: the timer's alone (“without the timer”), that of all interrupts \
(“clean”), and that of whoever else had the processor in spite of the priority (“alone”).\n\n";

fn compared(noise: Option<&Noise>) -> String {
    let Some(noise) = noise else { return String::new() };
    let said = |of: &Distribution, part| of.quantile(part).map(short).unwrap_or_default();
    let counts = InterruptKind::ALL.iter().zip(noise.interrupts).filter(|(_, count)| *count > 0);
    let counts: Vec<_> = counts.map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    let beyond = noise.noisy.part_below(1_500.0).map_or(0.0, |part| 100.0 * (1.0 - part));
    format!(
        "In {} iterations there were {}. The median iteration takes {} us, one in a hundred more than {} us, {} % more \
         than 1.5 ms (the paper: about 1 %); without all interrupts the same are {} us and {} us. What is left then is not the \
         direct cost of any handler: the way into the kernel and back around it, the recording itself, caches, and \
         on a virtual machine the times when the hypervisor ran something else, of which this kernel knows nothing. The \
         paper showed by cache misses, and by switching the caches off, that its rest was the caches' doing; that cannot be \
         repeated here, so how much of ours is caches and how much the hypervisor remains open. Everybody else used {} % of \
         all processors meanwhile.\n\n",
        noise.noisy.values().len(),
        if counts.is_empty() { "no interrupts".to_owned() } else { counts.join(", ") },
        said(&noise.noisy, 0.5),
        said(&noise.noisy, 0.99),
        short(beyond),
        said(&noise.clean, 0.5),
        said(&noise.clean, 0.99),
        short(noise.others),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::figure::Verdict::{self, Agrees, Differs, NotMeasured, TooNoisy};

    /// The verdicts on the first two figures if iterations take 1000 us or up to `longer` us more, and without
    /// interrupts up to `longer_clean` us more.
    fn verdicts(longer: f64, longer_clean: f64, others: f64) -> Vec<Verdict> {
        let of = |most: f64| Distribution::of(vec![1_000.0, 1_000.0 + most / 2.0, 1_000.0 + most]);
        let noise = Noise {
            noisy: of(longer),
            without_timer: of(longer),
            clean: of(longer_clean),
            alone: of(longer_clean),
            interrupts: [0; 4],
            others,
            lost: 0,
        };
        figures(Some(&noise), true).iter().map(|figure| figure.verdict).collect()
    }

    #[test]
    fn klog_9_noise_that_interrupts_leave_as_it_is_agrees_and_what_is_left_has_no_cause() {
        assert_eq!(verdicts(1_500.0, 1_450.0, 0.0), [Agrees, Agrees, NotMeasured, NotMeasured, NotMeasured]);
        assert_eq!(verdicts(600.0, 300.0, 0.0)[..3], [Differs, Differs, NotMeasured]);
        assert_eq!(verdicts(600.0, 900.0, 0.0)[1], Differs, "what grows is affected, too");
        assert_eq!(verdicts(0.0, 0.0, 0.0)[1], NotMeasured);
        let missing: Vec<_> = figures(None, true).iter().map(|figure| figure.verdict).collect();
        assert_eq!(missing, [NotMeasured; 5]);
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_noise_that_others_make() {
        assert_eq!(verdicts(1_500.0, 1_450.0, 11.0)[..3], [TooNoisy, TooNoisy, NotMeasured]);
        assert_eq!(verdicts(1_500.0, 1_450.0, 10.0)[..2], [Agrees, Agrees]);
    }
}
