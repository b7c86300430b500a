//! The page and the data of a study of the TAVS paper.

use std::fmt::Write as _;

use mete_sim::metrics::Estimate;

use super::plan::{Measure, Plan, RanCases};
use crate::study::figure::{self, Figure};
use mete_measure::report::{Report, quoted};
use mete_plot::short;

pub(super) fn files(
    plan: &Plan,
    report: &Report,
    figures: &[Figure],
    found: &RanCases,
) -> Vec<(String, String)> {
    let plots = (plan.plots)(found);
    let page = page(plan, report, figures, found, &plots);
    let mut files = vec![("README.md".to_owned(), page), ("cases.csv".to_owned(), csv(plan, report, found))];
    files.extend(plots);
    files
}

fn csv(plan: &Plan, report: &Report, found: &RanCases) -> String {
    let mut text = format!("# {}\n# {}\n", report.title, report.machine.line());
    text.push_str("case,measure,unit,mean,ci95,seeds\n");
    for ran in &found.0 {
        for measure in plan.measures {
            let Some(estimate) = ran.estimate(measure) else { continue };
            let (case, name) = (quoted(&ran.case.label()), quoted(measure.name));
            let half = estimate.half_width.map_or(String::new(), |half| format!("{half:.4}"));
            let _ = writeln!(
                text,
                "{case},{name},{},{:.4},{half},{}",
                measure.unit, estimate.mean, estimate.samples
            );
        }
    }
    text
}

fn page(
    plan: &Plan,
    report: &Report,
    figures: &[Figure],
    found: &RanCases,
    plots: &[(String, String)],
) -> String {
    let mut page = format!("# {}\n\n", plan.title);
    let _ = writeln!(page, "Taken with `{}`, {}.\n", report.title, report.machine.date);
    if !report.is_complete {
        page.push_str("The run was stopped before its end; what is missing here was not simulated.\n\n");
    }
    page.push_str(&figure::markdown(figures));
    plan.prose.iter().for_each(|paragraph| {
        let _ = writeln!(page, "{paragraph}\n");
    });
    for (name, _) in plots {
        let _ = writeln!(page, "![]({name})\n");
    }
    page.push_str(&tables(plan.measures, found));
    page.push_str(&commands(found));
    page
}

/// The table of each measure's means with their 95 % confidence intervals.
fn tables(measures: &[Measure], found: &RanCases) -> String {
    let seeds = found.0.first().map_or(0, |ran| ran.outcomes.len());
    let measures: Vec<_> =
        measures.iter().filter(|measure| found.0.iter().any(|ran| ran.estimate(measure).is_some())).collect();
    let mut text = format!("Means over {seeds} seeds, with 95 % confidence (`cases.csv`):\n\n| case |");
    measures.iter().for_each(|measure| {
        let _ = write!(text, " {}, {} |", measure.name, measure.unit);
    });
    let _ = writeln!(text, "\n|---|{}", "---:|".repeat(measures.len()));
    for ran in &found.0 {
        let _ = write!(text, "| {} |", ran.case.label());
        for measure in &measures {
            let _ = write!(text, " {} |", ran.estimate(measure).map_or(String::new(), said));
        }
        text.push('\n');
    }
    text + "\n"
}

fn said(estimate: Estimate) -> String {
    let half = estimate.half_width.filter(|half| *half > 0.0);
    short(estimate.mean) + &half.map_or(String::new(), |half| format!(" ± {}", short(half)))
}

fn commands(found: &RanCases) -> String {
    let mut text = String::from("One run of a case (`--seed` 1 and on):\n\n| case | |\n|---|---|\n");
    for ran in &found.0 {
        let _ = writeln!(text, "| {} | `{}` |", ran.case.label(), ran.case.command());
    }
    text
}
