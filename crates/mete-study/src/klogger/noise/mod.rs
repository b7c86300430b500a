//! The kernel's noise: how long a loop that should take a millisecond does take (KLogger paper, §10.1,
//! figures 8 to 10).

mod iterations;
mod lengths;
mod pictures;

use std::ops::RangeInclusive;
use std::path::Path;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use serde_json::{Value, json};

use self::lengths::{Lengths, spread, taken, windows};
use super::cdf::{self, Distribution};
use super::of_trace::{self, loss};
use crate::study::{Finding, Findings, KeptRows, Study, StudyFile, StudyOptions, StudyResults, about};
use crate::trace::{INTERRUPTS, InterruptKind, Spans};

/// The number of stretches, then the same for a quick run.
const STRETCHES: [usize; 2] = [40, 5];

/// The range of quotients that counts as unaffected by the direct overhead: a tenth in both directions.
const UNAFFECTED: RangeInclusive<f64> = 0.9..=1.1;

pub(crate) struct Noise;

impl Study for Noise {
    about!(
        "noise",
        "how long a loop of 1 ms takes, raw and with interrupts subtracted (KLogger figures 8 to 10)"
    );
    type Found = Option<Lengths>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let lengths = lengths::measure(STRETCHES[usize::from(options.is_quick)], progress);
        report.rows = rows(&lengths);
        lengths.ok()
    }

    fn findings(lengths: &Self::Found) -> Findings {
        let Some(lengths) = lengths else { return Findings::new() };
        [("range", range(lengths)), ("direct", direct(lengths))]
            .map(|(id, finding)| (id, finding.map(|finding| finding.unless_busy(lengths.others))))
            .into()
    }

    fn facts(lengths: &Self::Found) -> Value {
        json!({ "found": lengths.as_ref().map(facts) })
    }

    fn pictures(lengths: &Self::Found) -> Vec<StudyFile> {
        lengths.as_ref().map(|lengths| pictures::of(&pictures::curves(lengths))).unwrap_or_default()
    }

    fn data(lengths: &Self::Found, _: &Report) -> Vec<StudyFile> {
        lengths.iter().map(|lengths| cdf::file(&pictures::curves(lengths), "us")).collect()
    }

    fn redrawn(kept: &KeptRows) -> Vec<StudyFile> {
        pictures::of(&kept.curves)
    }
}

fn rows(lengths: &Result<Lengths, Reason>) -> Vec<Row> {
    let row = |what: &str, unit, values: fn(&Lengths) -> Vec<f64>| {
        Row::new(format!("noise: {what}"), unit, lengths.as_ref().map(values).map_err(Clone::clone))
    };
    let lost = lengths.as_ref().map_or(0, |lengths| lengths.lost);
    vec![
        row("iteration", "us", |of| of.noisy.values().to_vec())
            .note("a loop of additions on the stack, at a real-time priority")
            .note(loss(lost)),
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
    let recorded = of_trace::open(directory, "interrupt", &INTERRUPTS)?;
    let spans = Spans::of(&recorded);
    let all = (0..recorded.processors() as u32).map(|processor| {
        let own = spans.iter().filter(|span| span.processor == processor);
        let us = windows(&taken(own));
        let name = format!("noise: processor {processor}, of a millisecond");
        let row = Row::new(name, "us", Ok(us.clone())).note(loss(recorded.lost()));
        (row, Distribution::of(us).series(&format!("processor {processor}")))
    });
    let (rows, series): (Vec<_>, Vec<_>) = all.unzip();
    let files = vec![pictures::of_trace(&series), cdf::file(&series, "us")];
    Ok(of_trace::results::<Noise>(directory, rows, files))
}

/// The slowest iteration takes at least twice as long as the fastest.
fn range(lengths: &Lengths) -> Option<Finding> {
    let [least, most] = [lengths.noisy.quantile(0.0)?, lengths.noisy.quantile(1.0)?];
    let values = json!({ "least_us": least, "most_us": most, "factor": most / least });
    Some(Finding::new(values, most >= 2.0 * least))
}

/// Subtracting the direct overhead of interrupts does not affect the noise.
fn direct(lengths: &Lengths) -> Option<Finding> {
    // Without variation there is no noise that could be reduced.
    let noisy = spread(&lengths.noisy).filter(|noisy| *noisy > 0.0)?;
    let clean = spread(&lengths.clean)?;
    let left = clean / noisy;
    let values = json!({ "noisy": noisy, "clean": clean, "left": 100.0 * left });
    Some(Finding::new(values, UNAFFECTED.contains(&left)))
}

#[cfg(test)]
mod tests {
    use mete_measure::Verdict::{self, Fails, Holds, NotMeasured, TooNoisy};

    use super::*;

    /// The verdicts on the first two figures if iterations take 1000 us or up to `longer` us more, and
    /// without interrupts up to `longer_clean` us more.
    fn verdicts(longer: f64, longer_clean: f64, others: f64) -> Vec<Verdict> {
        let of = |most: f64| Distribution::of(vec![1_000.0, 1_000.0 + most / 2.0, 1_000.0 + most]);
        let (noisy, clean) = (of(longer), of(longer_clean));
        verdicts_on(Lengths { noisy, clean, others, ..Lengths::default() })
    }

    fn verdicts_on(lengths: Lengths) -> Vec<Verdict> {
        crate::study::verdicts(Noise::findings(&Some(lengths)))
    }

    #[test]
    fn klog_9_noise_that_interrupts_leave_as_it_is_agrees_and_what_is_left_has_no_cause() {
        assert_eq!(verdicts(1_500.0, 1_450.0, 0.0), [Holds, Holds]);
        assert_eq!(verdicts(600.0, 300.0, 0.0), [Fails, Fails]);
        assert_eq!(verdicts(600.0, 900.0, 0.0)[1], Fails, "what grows is affected, too");
        assert_eq!(verdicts(0.0, 0.0, 0.0)[1], NotMeasured);
        assert_eq!(verdicts_on(Lengths::default()), [NotMeasured; 2]);
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_noise_that_others_make() {
        assert_eq!(verdicts(1_500.0, 1_450.0, 11.0), [TooNoisy, TooNoisy]);
        assert_eq!(verdicts(1_500.0, 1_450.0, 10.0), [Holds, Holds]);
    }
}
