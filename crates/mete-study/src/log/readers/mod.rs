//! What it costs to read a log while it is written (thesis §5.2.2): the papers' reader, which begins again
//! when a writer has disturbed it, beside ours, which does not.

mod reader;
mod result;
mod setup;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use mete_base::csv;
use mete_base::progress::Progress;
use mete_measure::processor::{self, Pinned};
use mete_measure::{Reason, Report, Row};
use mete_plot::{self as plot, Axis, Series};
use serde_json::{Value, json};

use self::result::{Load, ReaderResult, Scheme, TRIALS, find, sizes};
use self::setup::{ReaderSetup, THESIS_PACE_NS};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about, head};

/// The size that the text is about: the largest one at which the thesis measured its second scheme.
const SPOKEN_OF: u64 = 2048;
/// The sizes in the page's table.
const SHOWN: [u64; 6] = [128, 512, 2048, 8192, 65_536, 1 << 20];

pub(crate) struct Readers;

impl Study for Readers {
    about!("log-readers", "what it costs to read a log that is being written (figures 5.4 to 5.6)");
    type Found = Vec<ReaderResult>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let mut found = Vec::new();
        if let Err(reason) = measure_all(options, progress, &mut found) {
            report.rows.push(Row::new("readers: all rows", "trials", Err(reason)));
        }
        report.rows.extend(found.iter().flat_map(ReaderResult::rows));
        found
    }

    fn findings(found: &Self::Found) -> Findings {
        vec![
            ("clearing", of_all_sizes(found, Scheme::RestartClearing).map(clearing)),
            ("restart", of_all_sizes(found, Scheme::Restart).map(restart)),
        ]
    }

    fn facts(found: &Self::Found) -> Value {
        let late = find(found, Scheme::Restart, Load::FullSpeed, SPOKEN_OF).map(ReaderResult::trials_95);
        let lines = [Load::ThesisPace, Load::FullSpeed]
            .into_iter()
            .flat_map(|load| Scheme::ALL.map(|scheme| line(found, scheme, load)));
        json!({
            "bytes": SPOKEN_OF,
            "limit": TRIALS,
            "thesis_pace_ns": THESIS_PACE_NS,
            "full_speed": by_scheme(found, Load::FullSpeed, ReaderResult::mean_trials),
            "restart_95": late,
            "thesis_pace": by_scheme(found, Load::ThesisPace, ReaderResult::mean_trials),
            "thesis_pace_times_ns": by_scheme(found, Load::ThesisPace, ReaderResult::median_ns),
            "no_writer_times_ns": by_scheme(found, Load::NoWriter, ReaderResult::median_ns),
            "unlogged_percent": unlogged_percent(found),
            "shown": SHOWN,
            "readers": lines.collect::<Vec<_>>(),
        })
    }

    fn pictures(found: &Self::Found) -> Vec<StudyFile> {
        vec![
            ("figure-5.4-5.5-thesis-pace.svg".to_owned(), trials(found, Load::ThesisPace)),
            ("figure-5.4-5.5-full-speed.svg".to_owned(), trials(found, Load::FullSpeed)),
            ("figure-5.6-thesis-pace.svg".to_owned(), times(found, Load::ThesisPace)),
            ("figure-5.6-full-speed.svg".to_owned(), times(found, Load::FullSpeed)),
        ]
    }

    fn data(found: &Self::Found, report: &Report) -> Vec<StudyFile> {
        vec![("distribution.csv".to_owned(), distribution(found, report))]
    }
}

/// Measures until it is done, stopped or not possible, and adds what was measured to `found`.
fn measure_all(
    options: StudyOptions,
    progress: &mut dyn Progress,
    found: &mut Vec<ReaderResult>,
) -> Result<(), Reason> {
    let here = processor::quietest();
    let there = processor::other_than(here);
    let mut setup = ReaderSetup::new(there)?;
    let _pinned = Pinned::to(here)?;
    let time = Duration::from_millis(if options.is_quick { 8 } else { 80 });
    for load in Load::ALL {
        if load != Load::NoWriter && here == there {
            return Err(Reason::new(
                "this machine has one processor: no thread can write while another one reads",
            ));
        }
        progress.begin(load.name(), sizes().len() as u64);
        for bytes in sizes() {
            for scheme in Scheme::ALL {
                if progress.is_cancelled() {
                    return Ok(());
                }
                found.push(setup.result(scheme, load, bytes, time)?);
            }
            progress.step();
        }
    }
    Ok(())
}

/// The value of each reader for the size that the text is about.
fn by_scheme(found: &[ReaderResult], load: Load, value: fn(&ReaderResult) -> f64) -> Value {
    let [one_pass, clearing, restart] =
        Scheme::ALL.map(|scheme| find(found, scheme, load, SPOKEN_OF).map(value));
    json!({ "one_pass": one_pass, "clearing": clearing, "restart": restart })
}

/// A reader under a load, by the sizes that are [`SHOWN`].
fn line(found: &[ReaderResult], scheme: Scheme, load: Load) -> Value {
    let cells = SHOWN.map(|bytes| {
        let result = find(found, scheme, load, bytes)?;
        Some(json!({ "trials": result.mean_trials(), "starved_percent": result.starved_percent() }))
    });
    json!({ "reader": scheme.name(), "load": load.name(), "cells": cells })
}

/// The part of all occurrences that became no row in the runs with clearing.
fn unlogged_percent(found: &[ReaderResult]) -> f64 {
    let clearing = found.iter().filter(|result| result.scheme == Scheme::RestartClearing);
    let (unlogged, written) = clearing
        .fold((0, 0), |(unlogged, written), result| (unlogged + result.unlogged, written + result.written));
    100.0 * unlogged as f64 / (unlogged + written).max(1) as f64
}

/// The number of analyses for each number of trials: the thesis' distributions as data.
fn distribution(found: &[ReaderResult], report: &Report) -> String {
    let mut text = head(report) + "reader,load,bytes,trials,analyses\n";
    for result in found {
        let mut counts = BTreeMap::new();
        result.trials.iter().for_each(|trials| *counts.entry(*trials as u64).or_insert(0u64) += 1);
        for (trials, analyses) in counts {
            let name = csv::field(result.scheme.name());
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name},{},{},{trials},{analyses}", result.load.name(), result.bytes);
        }
    }
    text
}

/// A reader's results beside a writer at the thesis' pace, which its figures have. `None` without all sizes,
/// because then they do not show where the limit is.
fn of_all_sizes(
    found: &[ReaderResult],
    scheme: Scheme,
) -> Option<impl Iterator<Item = &ReaderResult> + Clone> {
    let results = result::of(found, scheme, Load::ThesisPace);
    (results.clone().count() == sizes().len()).then_some(results)
}

/// The worst size decides: the statement is about all of them.
fn clearing<'a>(results: impl Iterator<Item = &'a ReaderResult>) -> Finding {
    let trials = results.map(ReaderResult::mean_trials).fold(0.0, f64::max);
    Finding::new(json!({ "trials": trials }), trials <= 2.0)
}

/// The reader starves, but not up to the largest size of the thesis.
fn restart<'a>(results: impl Iterator<Item = &'a ReaderResult>) -> Finding {
    let starving = results.filter(|result| result.starved > 0).map(|result| result.bytes).min();
    Finding::new(json!({ "bytes": starving }), starving.is_some_and(|bytes| bytes > SPOKEN_OF))
}

fn trials(found: &[ReaderResult], load: Load) -> String {
    let all = Scheme::ALL.map(|scheme| {
        let results = result::of(found, scheme, load);
        Series::new(scheme.name(), results.map(|result| (result.bytes as f64, result.mean_trials())))
    });
    let title = format!("Trials of a reader, {} (thesis, figures 5.4 and 5.5)", load.name());
    let [x, y] = ["log file, bytes", "trials an analysis, mean"].map(Axis::logarithmic);
    plot::lines(&title, &x, &y, &all)
}

fn times(found: &[ReaderResult], load: Load) -> String {
    let writer = Scheme::ALL.map(|scheme| (scheme.name().to_owned(), scheme, load));
    let quiet = [Scheme::Ours, Scheme::Restart]
        .map(|scheme| (format!("{}, no writer", scheme.name()), scheme, Load::NoWriter));
    let all = writer.into_iter().chain(quiet).map(|(name, scheme, load)| {
        let results = result::of(found, scheme, load);
        Series::new(name, results.map(|result| (result.bytes as f64, result.median_ns())))
    });
    let title = format!("Time of an analysis, {} (thesis, figure 5.6)", load.name());
    let [x, y] = ["log file, bytes", "an analysis, ns, median"].map(Axis::logarithmic);
    plot::lines(&title, &x, &y, &all.collect::<Vec<_>>())
}
