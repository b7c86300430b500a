//! A study as data: cases, measures, and what the paper says about them.

use std::num::NonZeroUsize;

use mete_sim::metrics::{Estimate, Latencies};
use mete_sim::{all_processors, in_parallel};

use super::case::{Case, Outcome};
use super::{axis, page};
use crate::study::figure::Figure;
use crate::study::{StudyOptions, StudyResults};
use mete_base::progress::{Progress, step_on};
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use mete_plot::{self as plot, Series};

/// A number that is computed from each run.
#[derive(Clone, Copy)]
pub(super) struct Measure {
    pub name: &'static str,
    pub unit: &'static str,
    /// `None` where the measure does not apply.
    pub of: fn(&Outcome) -> Option<f64>,
}

/// A whole study.
pub(super) struct Plan {
    pub folder: &'static str,
    pub title: &'static str,
    pub cases: Vec<Case>,
    /// The number of seeds with which each case runs, from 1 on.
    pub seeds: u64,
    pub measures: &'static [Measure],
    /// The paper's statements with the results. Without any results, all figures are missing.
    pub figures: fn(&RanCases) -> Vec<Figure>,
    /// Plots by file name.
    pub plots: fn(&RanCases) -> Vec<(String, String)>,
    /// What the study shows; and where it deviates from the paper, and why.
    pub prose: [&'static str; 2],
}

/// Enough seeds to see that the study works.
const QUICK_SEEDS: u64 = 3;

/// The results of a case, seed by seed.
pub(super) struct RanCase {
    pub case: Case,
    pub outcomes: Vec<Outcome>,
}

/// The results of all cases. Empty if the study was stopped.
#[derive(Default)]
pub(super) struct RanCases(pub Vec<RanCase>);

impl Plan {
    pub(super) fn study(self, options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
        let mut report = Report::new(format!("mete study {}", self.folder));
        let seeds = if options.is_quick { self.seeds.min(QUICK_SEEDS) } else { self.seeds };
        let found = match self.run(seeds, all_processors(), progress) {
            Ok(found) => found,
            Err(reason) => {
                report.rows.push(Row::new("all cases", "", Err(reason)));
                RanCases::default()
            }
        };
        report.is_complete = !progress.is_cancelled();
        report.rows.extend(found.rows(self.measures));
        let figures = (self.figures)(&found);
        let files = page::files(&self, &report, &figures, &found);
        StudyResults { folder: self.folder, report, figures, files }
    }

    /// Runs every case with every seed. The results do not depend on the number of threads.
    fn run(
        &self,
        seeds: u64,
        threads: NonZeroUsize,
        progress: &mut dyn Progress,
    ) -> Result<RanCases, Reason> {
        // A divisor below: a case has at least one run.
        let seeds_of = seeds.max(1) as usize;
        let jobs = self.cases.len() * seeds_of;
        progress.begin(self.folder, jobs as u64);
        let outcomes = in_parallel(
            jobs,
            threads,
            // The jobs of a case follow each other, and seeds count from 1.
            |job| self.cases[job / seeds_of].run((job % seeds_of) as u64 + 1),
            || step_on(progress),
        );
        let outcomes = outcomes.ok_or_else(|| Reason::new("stopped before it was simulated"))?;
        let mut outcomes = outcomes.into_iter();
        self.cases
            .iter()
            .map(|case| {
                let own: Result<_, _> = outcomes.by_ref().take(seeds_of).collect();
                own.map(|outcomes| RanCase { case: case.clone(), outcomes })
            })
            .collect::<Result<_, _>>()
            .map(RanCases)
    }
}

impl RanCases {
    pub(super) fn at(&self, line: &str, x: Option<f64>) -> Option<&RanCase> {
        self.0.iter().find(|ran| ran.case.line == line && ran.case.x == x)
    }

    /// The mean of a measure over the seeds.
    pub(super) fn mean(&self, line: &str, x: Option<f64>, measure: &Measure) -> Option<f64> {
        self.at(line, x)?.estimate(measure).map(|estimate| estimate.mean)
    }

    /// The interval in which the mean of a measure lies with a confidence of 95 %.
    pub(super) fn interval(&self, line: &str, x: Option<f64>, measure: &Measure) -> Option<(f64, f64)> {
        interval(self.at(line, x)?.estimate(measure)?)
    }

    /// The same for each point of a line.
    pub(super) fn intervals(
        &self,
        line: &str,
        series: &Series,
        measure: &Measure,
    ) -> Vec<Option<(f64, f64)>> {
        series.points.iter().map(|(x, _)| self.interval(line, Some(*x), measure)).collect()
    }

    /// A plot of these lines of the plan over x, with their intervals.
    pub(super) fn drawn(&self, title: &str, [x, y]: [&str; 2], measure: &Measure, lines: &[&str]) -> String {
        let mut series = self.series(measure);
        series.retain(|series| lines.contains(&series.name.as_str()));
        let intervals: Vec<_> =
            series.iter().map(|series| self.intervals(&series.name, series, measure)).collect();
        plot::lines_with_intervals(title, &axis(x), &axis(&mean_of(y)), &series, &intervals)
    }

    /// The distribution functions of times, in milliseconds and percent, with a line for each case.
    pub(super) fn curves(&self, times: fn(&Outcome) -> &Latencies) -> Vec<Series> {
        self.0.iter().map(|ran| Series { name: ran.case.label(), points: ran.curve(times) }).collect()
    }

    /// A measure over x, a series for each line.
    pub(super) fn series(&self, measure: &Measure) -> Vec<Series> {
        let mut series: Vec<Series> = Vec::new();
        for ran in &self.0 {
            let (Some(x), Some(estimate)) = (ran.case.x, ran.estimate(measure)) else { continue };
            match series.iter_mut().find(|series| series.name == ran.case.line) {
                Some(line) => line.points.push((x, estimate.mean)),
                None => {
                    series.push(Series { name: ran.case.line.to_owned(), points: vec![(x, estimate.mean)] })
                }
            }
        }
        series
    }

    fn rows(&self, measures: &[Measure]) -> Vec<Row> {
        self.0.iter().flat_map(|ran| measures.iter().filter_map(move |measure| ran.row(measure))).collect()
    }
}

impl RanCase {
    fn samples(&self, measure: &Measure) -> Option<Vec<f64>> {
        self.outcomes.iter().map(measure.of).collect()
    }

    /// `None` where the measure does not apply.
    fn row(&self, measure: &Measure) -> Option<Row> {
        let samples = self.samples(measure)?;
        Some(Row::new(format!("{}: {}", self.case.label(), measure.name), measure.unit, Ok(samples)))
    }

    pub(super) fn estimate(&self, measure: &Measure) -> Option<Estimate> {
        Estimate::of(&self.samples(measure)?)
    }

    /// The times of all seeds together.
    pub(super) fn times(&self, times: fn(&Outcome) -> &Latencies) -> Latencies {
        let mut all = Latencies::default();
        self.outcomes.iter().for_each(|outcome| all.add(times(outcome)));
        all
    }

    fn curve(&self, times: fn(&Outcome) -> &Latencies) -> Vec<(f64, f64)> {
        let curve: Vec<_> =
            self.times(times).curve().map(|(ns, part)| (ns as f64 / 1e6, 100.0 * part)).collect();
        let first = curve.first().map(|&(ms, _)| (ms, 0.0));
        first.into_iter().chain(curve).collect()
    }
}

/// A label that explains the beams on points and bars.
pub(super) fn mean_of(label: &str) -> String {
    format!("{label} (mean, 95 %)")
}

/// The interval as two ends; `None` where there is nothing to draw, because there is one seed or all results are equal.
pub(super) fn interval(estimate: Estimate) -> Option<(f64, f64)> {
    let half = estimate.half_width.filter(|half| *half > 0.0)?;
    Some((estimate.mean - half, estimate.mean + half))
}

/// A statement of the paper with the result, and whether the result says the same. `None` means that the study was
/// stopped before.
pub(super) fn claim(figure: &str, paper: &str, found: Option<(String, bool)>) -> Figure {
    match found {
        Some((ours, holds)) => Figure::new(figure, paper, ours, holds),
        None => Figure::missing(figure, paper, "stopped before it was simulated"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tavs_8_pictures_show_how_sure_their_means_are() {
        let plan = super::super::response::plan();
        let beams = |seeds| {
            let found = plan.run(seeds, NonZeroUsize::MIN, &mut ()).expect("it runs");
            let plots = (plan.plots)(&found);
            let (_, plot) =
                plots.into_iter().find(|(name, _)| name == "figure-10c.svg").expect("there is one");
            assert!(plot.contains("processor time, % (mean, 95 %)"), "{plot}");
            plot.matches("h6M").count()
        };
        assert_eq!(beams(1), 0, "one run says nothing of its spread");
        assert!(beams(2) > 0);
    }

    #[test]
    fn tavs_8_results_are_the_same_whatever_the_number_of_threads() {
        let plan = super::super::response::plan();
        let run = |threads| plan.run(2, NonZeroUsize::new(threads).expect("some"), &mut ());
        let [one, many] = [1, 3].map(|threads| run(threads).map(|found| found.0).expect("it runs"));
        assert_eq!(one.len(), plan.cases.len());
        for (one, many) in one.iter().zip(&many) {
            assert_eq!(one.outcomes, many.outcomes, "{}", one.case.label());
        }
        let [first, second] = &one[0].outcomes[..] else { panic!("two seeds") };
        assert_ne!(first.probe, second.probe, "seeds differ");
    }
}
