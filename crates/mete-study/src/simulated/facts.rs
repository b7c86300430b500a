//! The cases as data: for the layout of the page, and as comma-separated values.

use std::fmt::Write as _;

use mete_measure::report::{Report, quoted};
use mete_sim::metrics::Estimate;
use serde::Serialize;

use super::ran::{Measure, Ran, RanCase};
use crate::study::head;

/// What `studies/simulated.md` lays out.
#[derive(Serialize)]
pub(super) struct Facts {
    /// The number of runs of each case.
    seeds: usize,
    /// The measures that apply to at least one case.
    measures: Vec<MeasureFacts>,
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct MeasureFacts {
    name: &'static str,
    unit: &'static str,
}

/// The cases of a line.
#[derive(Serialize)]
struct Line {
    name: &'static str,
    cases: Vec<CaseFacts>,
}

#[derive(Serialize)]
struct CaseFacts {
    x: Option<String>,
    command: String,
    /// For each measure its mean, and half of the width of the mean's interval of 95 % confidence.
    means: Vec<Option<(f64, Option<f64>)>>,
}

impl Facts {
    pub(super) fn of<B>(found: &Ran<B>, measures: &[Measure]) -> Facts {
        // A column without any value would only make the table wider.
        let apply = measures.iter().filter(|of| found.cases.iter().any(|ran| ran.estimate(of).is_some()));
        let measures: Vec<&Measure> = apply.collect();
        let lines = found.cases.chunk_by(|one, next| one.case.line == next.case.line);
        Facts {
            seeds: found.cases.first().map_or(0, |ran| ran.outcomes.len()),
            lines: lines.map(|cases| Line::of(cases, &measures)).collect(),
            measures: measures.iter().map(|of| MeasureFacts { name: of.name, unit: of.unit }).collect(),
        }
    }
}

impl Line {
    /// The line of these cases, of which there is at least one.
    fn of(cases: &[RanCase], measures: &[&Measure]) -> Line {
        let facts = cases.iter().map(|ran| CaseFacts {
            x: ran.case.x.map(|x| x.to_string()),
            command: ran.case.command(),
            means: measures.iter().map(|measure| ran.estimate(measure).map(mean)).collect(),
        });
        Line { name: cases[0].case.line, cases: facts.collect() }
    }
}

fn mean(of: Estimate) -> (f64, Option<f64>) {
    (of.mean, of.half_width.filter(|half| *half > 0.0))
}

/// The text of `cases.csv`.
pub(super) fn csv<B>(found: &Ran<B>, measures: &[Measure], report: &Report) -> String {
    let mut text = head(report) + "case,measure,unit,mean,ci95,seeds\n";
    for ran in &found.cases {
        for measure in measures {
            let Some(estimate) = ran.estimate(measure) else { continue };
            let (case, name, unit) = (quoted(&ran.case.label()), quoted(measure.name), measure.unit);
            let half = estimate.half_width.map_or(String::new(), |half| format!("{half:.4}"));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{case},{name},{unit},{:.4},{half},{}", estimate.mean, estimate.samples);
        }
    }
    text
}
