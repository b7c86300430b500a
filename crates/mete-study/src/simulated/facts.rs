//! The cases as data: for the layout of the page, and as comma-separated values.

use mete_base::csv;
use mete_measure::report::Report;
use mete_sim::metrics::Estimate;
use serde_json::{Value, json};

use super::ran::{Measure, Ran, RanCase};
use crate::study::head;

/// What `studies/simulated.md` lays out: how many runs each case has, the measures that apply to at least one
/// case, and the cases line by line.
pub(super) fn facts<B>(found: &Ran<B>, measures: &[Measure]) -> Value {
    // A column without any value would only make the table wider.
    let apply = measures.iter().filter(|of| found.cases.iter().any(|ran| ran.estimate(of).is_some()));
    let measures: Vec<&Measure> = apply.collect();
    let lines = found.cases.chunk_by(|one, next| one.case.line == next.case.line).map(|cases| {
        let facts: Vec<_> = cases.iter().map(|ran| of_case(ran, &measures)).collect();
        json!({ "name": cases[0].case.line, "cases": facts })
    });
    let heads = measures.iter().map(|of| json!({ "name": of.name, "unit": of.unit }));
    json!({
        "seeds": found.cases.first().map_or(0, |ran| ran.outcomes.len()),
        "measures": heads.collect::<Vec<_>>(),
        "lines": lines.collect::<Vec<_>>(),
    })
}

/// A case: for each measure its mean, and half of the width of the mean's interval of 95 % confidence.
fn of_case(ran: &RanCase, measures: &[&Measure]) -> Value {
    let means: Vec<_> = measures.iter().map(|measure| ran.estimate(measure).map(mean)).collect();
    json!({ "x": ran.case.x.map(|x| x.to_string()), "command": ran.case.command(), "means": means })
}

fn mean(of: Estimate) -> (f64, Option<f64>) {
    (of.mean, of.half_width.filter(|half| *half > 0.0))
}

/// The text of `cases.csv`.
pub(super) fn csv<B>(found: &Ran<B>, measures: &[Measure], report: &Report) -> String {
    let all = found.cases.iter().flat_map(|ran| measures.iter().map(move |measure| (ran, measure)));
    let lines = all.filter_map(|(ran, measure)| {
        let Estimate { mean, half_width, samples, .. } = ran.estimate(measure)?;
        let (label, name, unit) = (ran.case.label(), csv::field(measure.name), measure.unit);
        let case = csv::field(&label);
        // One run has no interval: its field is empty.
        let half = half_width.map_or(String::new(), |half| format!("{half:.4}"));
        Some(format!("{case},{name},{unit},{mean:.4},{half},{samples}\n"))
    });
    head(report) + "case,measure,unit,mean,ci95,seeds\n" + &lines.collect::<String>()
}
