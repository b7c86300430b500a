//! The kernel's noise: how long a loop that should take a millisecond does take (KLogger paper, §10.1, figures 8
//! to 10).

mod findings;
mod iterations;
mod lengths;
mod pictures;
mod taken;

use std::path::Path;

use mete_base::progress::Progress;
use mete_bench::recording::Recorded;
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use serde::Serialize;
use serde_json::{Value, json};

use self::lengths::{Lengths, spread};
use super::cdf::{self, Distribution};
use super::of_trace;
use crate::study::{Findings, KeptRows, Study, StudyFile, StudyOptions, StudyResults, StudyTexts, texts};
use crate::trace::{INTERRUPTS, InterruptKind, Span, Spans};

/// The number of stretches, then the same for a quick run.
const STRETCHES: [usize; 2] = [40, 5];

pub(crate) struct Noise;

impl Study for Noise {
    const NAME: &'static str = "noise";
    const SHOWS: &'static str =
        "how long a loop of 1 ms takes, raw and with interrupts subtracted (KLogger figures 8 to 10)";
    const TEXTS: StudyTexts = texts!("noise");
    const IS_SIMULATED: bool = false;
    type Found = Option<Lengths>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let lengths = lengths::measure(STRETCHES[usize::from(options.is_quick)], progress);
        report.rows = rows(&lengths);
        lengths.ok()
    }

    fn findings(lengths: &Self::Found) -> Findings {
        lengths.as_ref().map(findings::of).unwrap_or_default()
    }

    fn facts(lengths: &Self::Found) -> impl Serialize {
        json!({ "found": lengths.as_ref().map(facts) })
    }

    fn pictures(lengths: &Self::Found) -> Vec<StudyFile> {
        lengths.as_ref().map(|lengths| pictures::of(&pictures::curves(lengths))).unwrap_or_default()
    }

    fn data(lengths: &Self::Found, _: &Report) -> Vec<StudyFile> {
        let csv = |lengths| ("distribution.csv".to_owned(), cdf::csv(&pictures::curves(lengths), "us"));
        lengths.iter().map(csv).collect()
    }

    fn redrawn(kept: &KeptRows) -> Vec<StudyFile> {
        pictures::of(&kept.curves)
    }
}

fn rows(lengths: &Result<Lengths, Reason>) -> Vec<Row> {
    let row = |what: &str, unit, values: fn(&Lengths) -> Vec<f64>| {
        Row::new(format!("noise: {what}"), unit, lengths.as_ref().map(values).map_err(Clone::clone))
    };
    let loss = lengths.as_ref().map(|lengths| of_trace::loss(lengths.lost)).unwrap_or_default();
    vec![
        row("iteration", "us", |of| of.noisy.values().to_vec())
            .note("a loop of additions on the stack, at a real-time priority")
            .note(loss),
        row("without the timer", "us", |of| of.without_timer.values().to_vec()),
        row("without all interrupts", "us", |of| of.clean.values().to_vec()),
        row("without interrupts and others' turns", "us", |of| of.alone.values().to_vec()),
        row("spread, as it is", "percent", |of| spread(&of.noisy).into_iter().collect())
            .note("from the first to the 99th percentile, of the median"),
        row("spread without all interrupts", "percent", |of| spread(&of.clean).into_iter().collect()),
        row("others' share", "percent", |of| vec![of.others]).note("of all processors"),
    ]
}

/// What the page says of iterations: lengths are in microseconds, and a slow one is at the 99th percentile.
fn facts(lengths: &Lengths) -> Value {
    let Lengths { noisy, clean, .. } = lengths;
    let counts = InterruptKind::ALL.into_iter().zip(lengths.interrupts).filter(|(_, count)| *count > 0);
    let counts = counts.map(|(kind, count)| json!({ "count": count, "kind": kind.name() }));
    json!({
        "iterations": noisy.values().len(),
        "interrupts": counts.collect::<Vec<_>>(),
        "median_us": noisy.quantile(0.5),
        "slow_us": noisy.quantile(0.99),
        "beyond_percent": noisy.part_below(1_500.0).map_or(0.0, |part| 100.0 * (1.0 - part)),
        "clean_median_us": clean.quantile(0.5),
        "clean_slow_us": clean.quantile(0.99),
        "others_percent": lengths.others,
    })
}

/// The study of a recorded trace: how much of each millisecond interrupts took on each processor.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = Recorded::open(directory)?;
    recorded.needs("interrupt", &INTERRUPTS)?;
    let (mut spans, mut all) = (Spans::default(), Vec::new());
    recorded.each(|next| all.extend(spans.next(&next)));
    let mut report = Report::new(format!("mete study noise --trace {}", directory.display()));
    let mut series = Vec::new();
    for processor in 0..recorded.processors() as u32 {
        let us = taken_us(&all, processor);
        let name = format!("noise: processor {processor}, of a millisecond");
        report.rows.push(Row::new(name, "us", Ok(us.clone())).note(of_trace::loss(recorded.lost())));
        series.push(Distribution::of(us).series(&format!("processor {processor}")));
    }
    let files = vec![pictures::of_trace(&series), ("distribution.csv".to_owned(), cdf::csv(&series, "us"))];
    Ok(StudyResults { folder: Noise::NAME, report, figures: Vec::new(), files })
}

/// The microseconds that interrupts took of each millisecond on a processor.
fn taken_us(spans: &[Span], processor: u32) -> Vec<f64> {
    let own = spans.iter().filter(|span| span.processor == processor);
    taken::windows(&taken::of(own))
}
