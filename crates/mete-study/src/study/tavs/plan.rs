//! A study as data: cases, measures, and what the paper says about them.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use mete_sim::metrics::{Estimate, Latencies};
use mete_sim::{all_processors, in_parallel};

use super::case::{Case, Outcome};
use super::page;
use crate::figure::Figure;
use crate::progress::Progress;
use crate::reason::Reason;
use crate::report::{Report, Row};
use crate::study::{Study, StudyOptions};
use crate::svg::Series;

/// A number of each run.
#[derive(Clone, Copy)]
pub(super) struct Measure {
    pub name: &'static str,
    pub unit: &'static str,
    /// `None` where it does not apply.
    pub of: fn(&Outcome) -> Option<f64>,
}

/// A whole study.
pub(super) struct Plan {
    pub folder: &'static str,
    pub title: &'static str,
    pub cases: Vec<Case>,
    /// How many seeds each case is run with, 1 on.
    pub seeds: u64,
    pub measures: &'static [Measure],
    /// What the paper says and what was found; made of nothing found, all are missing.
    pub figures: fn(&Found) -> Vec<Figure>,
    /// Plots by file name.
    pub plots: fn(&Found) -> Vec<(String, String)>,
    /// What it shows, and where it deviates from the paper and why.
    pub prose: [&'static str; 2],
}

/// Enough to see that it works.
const QUICK_SEEDS: u64 = 3;

/// What came out for a case, seed by seed.
pub(super) struct Ran {
    pub case: Case,
    pub outcomes: Vec<Outcome>,
}

/// What came out for all cases; nothing if it was stopped.
#[derive(Default)]
pub(super) struct Found(pub Vec<Ran>);

impl Plan {
    pub(super) fn study(self, options: StudyOptions, progress: &mut dyn Progress) -> Study {
        let mut report = Report::new(format!("mete study {}", self.folder));
        let seeds = if options.is_quick { self.seeds.min(QUICK_SEEDS) } else { self.seeds };
        let found = match self.run(seeds, all_processors(), progress) {
            Ok(found) => found,
            Err(reason) => {
                report.rows.push(Row::new("all cases", "", Err(reason)));
                Found::default()
            }
        };
        report.is_complete = !progress.is_cancelled();
        report.rows.extend(found.rows(self.measures));
        let figures = (self.figures)(&found);
        let files = page::files(&self, &report, &figures, &found);
        Study { folder: self.folder, report, figures, files }
    }

    /// Every case with every seed; the same whatever the number of threads.
    fn run(&self, seeds: u64, threads: NonZeroUsize, progress: &mut dyn Progress) -> Result<Found, Reason> {
        let seeds_of = seeds.max(1) as usize;
        let jobs = self.cases.len() * seeds_of;
        progress.begin(self.folder, jobs as u64);
        let run = |job: usize| self.cases[job / seeds_of].run((job % seeds_of) as u64 + 1);
        let done = || {
            progress.step();
            if progress.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let stopped = || Reason::new("stopped before it was simulated");
        let outcomes = in_parallel(jobs, threads, run, done).ok_or_else(stopped)?;
        let mut outcomes = outcomes.into_iter();
        let ran = |case: &Case| {
            let own: Result<_, _> = outcomes.by_ref().take(seeds_of).collect();
            own.map(|outcomes| Ran { case: case.clone(), outcomes })
        };
        self.cases.iter().map(ran).collect::<Result<_, _>>().map(Found)
    }
}

impl Found {
    pub(super) fn at(&self, line: &str, x: Option<f64>) -> Option<&Ran> {
        self.0.iter().find(|ran| ran.case.line == line && ran.case.x == x)
    }

    /// The mean of a measure over the seeds.
    pub(super) fn mean(&self, line: &str, x: Option<f64>, measure: &Measure) -> Option<f64> {
        self.at(line, x)?.estimate(measure).map(|estimate| estimate.mean)
    }

    /// The distribution functions of times, in milliseconds and percent, a line a case.
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
        let row = |ran: &Ran, measure: &Measure| {
            let samples = ran.samples(measure)?;
            Some(Row::new(format!("{}: {}", ran.case.label(), measure.name), measure.unit, Ok(samples)))
        };
        self.0.iter().flat_map(|ran| measures.iter().filter_map(move |measure| row(ran, measure))).collect()
    }
}

impl Ran {
    fn samples(&self, measure: &Measure) -> Option<Vec<f64>> {
        self.outcomes.iter().map(measure.of).collect()
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

/// A statement of the paper; what was found, and whether it says the same. `None`: stopped before.
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
