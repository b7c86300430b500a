//! What is simulated, and how it becomes a study.

use std::marker::PhantomData;
use std::num::NonZeroUsize;

use mete_base::progress::{Progress, step_on};
use mete_measure::{Reason, Report, Row};
use mete_sim::{all_processors, in_parallel};
use serde_json::Value;

use super::case::Case;
use super::facts::{csv, facts};
use super::ran::{Measure, Ran, RanCase};
use crate::study::{Findings, Study, StudyFile, StudyOptions, StudyTexts};

/// A study that simulates cases.
pub(crate) trait Plan {
    /// The study's name, which is that of its folder under `studies/`.
    const NAME: &'static str;
    /// What the study shows, in one line.
    const SHOWS: &'static str;
    /// The texts of the folder.
    const TEXTS: StudyTexts;
    /// The number of seeds with which each case runs, from 1 on.
    const SEEDS: u64;
    /// What is measured of each case.
    const MEASURES: &'static [Measure];
    /// What the study finds besides the results of its cases; `()` if there is nothing.
    type Besides: Default;

    fn cases() -> Vec<Case>;

    /// Finds what the results of the cases do not say. It is called if the cases ran.
    fn besides(_report: &mut Report) -> Self::Besides {
        Self::Besides::default()
    }

    /// What came out of each claim, by its id.
    fn findings(found: &Ran<Self::Besides>) -> Findings;

    /// The pictures. They are only drawn if the cases ran.
    fn pictures(found: &Ran<Self::Besides>) -> Vec<StudyFile>;
}

/// The study that a plan describes.
pub(crate) struct Simulated<P>(PhantomData<P>);

/// Enough seeds to see that the study works.
const QUICK_SEEDS: u64 = 3;

impl<P: Plan> Study for Simulated<P> {
    const NAME: &'static str = P::NAME;
    const SHOWS: &'static str = P::SHOWS;
    const TEXTS: StudyTexts = P::TEXTS;
    const IS_SIMULATED: bool = true;
    type Found = Ran<P::Besides>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let seeds = if options.is_quick { P::SEEDS.min(QUICK_SEEDS) } else { P::SEEDS };
        progress.begin(P::NAME, (P::cases().len() as u64) * seeds);
        match run(P::cases(), seeds, all_processors(), progress) {
            Ok(cases) => {
                let found = Ran { cases, besides: P::besides(report) };
                report.rows.extend(found.rows(P::MEASURES));
                found
            }
            Err(reason) => {
                report.rows.push(Row::new("all cases", "", Err(reason)));
                Ran::default()
            }
        }
    }

    fn findings(found: &Self::Found) -> Findings {
        P::findings(found)
    }

    fn facts(found: &Self::Found) -> Value {
        facts(found, P::MEASURES)
    }

    fn pictures(found: &Self::Found) -> Vec<StudyFile> {
        if found.cases.is_empty() { Vec::new() } else { P::pictures(found) }
    }

    fn data(found: &Self::Found, report: &Report) -> Vec<StudyFile> {
        vec![("cases.csv".to_owned(), csv(found, P::MEASURES, report))]
    }
}

/// Runs every case with every seed. The results do not depend on the number of threads.
pub(crate) fn run(
    cases: Vec<Case>,
    seeds: u64,
    threads: NonZeroUsize,
    progress: &mut dyn Progress,
) -> Result<Vec<RanCase>, Reason> {
    // A divisor below: a case has at least one run.
    let seeds = seeds.max(1) as usize;
    let outcomes = in_parallel(
        cases.len() * seeds,
        threads,
        // The jobs of a case follow each other, and seeds count from 1.
        |job| cases[job / seeds].run((job % seeds) as u64 + 1),
        || step_on(progress),
    );
    let outcomes = outcomes.ok_or_else(|| Reason::new("stopped before it was simulated"))?;
    let mut outcomes = outcomes.into_iter();
    let ran = cases.into_iter().map(|case| {
        let own: Result<_, _> = outcomes.by_ref().take(seeds).collect();
        own.map(|outcomes| RanCase { case, outcomes })
    });
    ran.collect()
}
