//! What it costs to read a log while it is written (thesis §5.2.2): the papers' reader, which begins again when a
//! writer has disturbed it, beside ours, which does not.

mod findings;
mod pictures;
mod reader;
mod result;
mod setting;
mod stage;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::processor::{self, Pinned};
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row, quoted};
use serde::Serialize;
use serde_json::{Value, json};

use self::result::{ReaderResult, TRIALS, find};
use self::setting::{Load, Scheme, sizes};
use self::stage::{Stage, THESIS_PACE_NS};
use crate::study::{Findings, Study, StudyFile, StudyOptions, StudyTexts, head, texts};

/// The size that the text is about: the largest one at which the thesis measured its second scheme.
const SPOKEN_OF: u64 = 2048;
/// The sizes in the page's table.
const SHOWN: [u64; 6] = [128, 512, 2048, 8192, 65_536, 1 << 20];

pub(crate) struct Readers;

impl Study for Readers {
    const NAME: &'static str = "log-readers";
    const SHOWS: &'static str = "what it costs to read a log that is being written (figures 5.4 to 5.6)";
    const TEXTS: StudyTexts = texts!("log-readers");
    const IS_SIMULATED: bool = false;
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
        findings::of(found, SPOKEN_OF)
    }

    fn facts(found: &Self::Found) -> impl Serialize {
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
        pictures::of(found)
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
    let mut stage = Stage::new(there)?;
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
                found.push(stage.result(scheme, load, bytes, time)?);
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
            let name = quoted(result.scheme.name());
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name},{},{},{trials},{analyses}", result.load.name(), result.bytes);
        }
    }
    text
}
