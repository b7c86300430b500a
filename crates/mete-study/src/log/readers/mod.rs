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
        Facts::of(found)
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

/// What the page says besides the findings.
#[derive(Serialize)]
struct Facts {
    /// The size that the text is about.
    bytes: u64,
    /// The trials after which the papers' reader gives up.
    limit: u32,
    thesis_pace_ns: f64,
    full_speed: ByScheme,
    /// The trials of the 95th of a hundred analyses by the papers' reader that does not clear, at full speed.
    restart_95: Option<f64>,
    thesis_pace: ByScheme,
    thesis_pace_times_ns: ByScheme,
    no_writer_times_ns: ByScheme,
    /// The part of all occurrences that became no row in the runs with clearing.
    unlogged_percent: f64,
    shown: [u64; 6],
    readers: Vec<ReaderLine>,
}

/// A mean of trials or a median of times by reader.
#[derive(Serialize)]
struct ByScheme {
    one_pass: Option<f64>,
    clearing: Option<f64>,
    restart: Option<f64>,
}

impl ByScheme {
    fn of(found: &[ReaderResult], load: Load, value: fn(&ReaderResult) -> f64) -> ByScheme {
        let [one_pass, clearing, restart] =
            Scheme::ALL.map(|scheme| find(found, scheme, load, SPOKEN_OF).map(value));
        ByScheme { one_pass, clearing, restart }
    }
}

/// A reader under a load, by the sizes that are [`SHOWN`].
#[derive(Serialize)]
struct ReaderLine {
    reader: &'static str,
    load: &'static str,
    cells: [Option<ReaderCell>; 6],
}

#[derive(Serialize)]
struct ReaderCell {
    trials: f64,
    starved_percent: f64,
}

impl Facts {
    fn of(found: &[ReaderResult]) -> Facts {
        let lines = [Load::ThesisPace, Load::FullSpeed]
            .into_iter()
            .flat_map(|load| Scheme::ALL.map(|scheme| ReaderLine::of(found, scheme, load)));
        Facts {
            bytes: SPOKEN_OF,
            limit: TRIALS,
            thesis_pace_ns: THESIS_PACE_NS,
            full_speed: ByScheme::of(found, Load::FullSpeed, ReaderResult::mean_trials),
            restart_95: find(found, Scheme::Restart, Load::FullSpeed, SPOKEN_OF).map(ReaderResult::trials_95),
            thesis_pace: ByScheme::of(found, Load::ThesisPace, ReaderResult::mean_trials),
            thesis_pace_times_ns: ByScheme::of(found, Load::ThesisPace, ReaderResult::median_ns),
            no_writer_times_ns: ByScheme::of(found, Load::NoWriter, ReaderResult::median_ns),
            unlogged_percent: unlogged_percent(found),
            shown: SHOWN,
            readers: lines.collect(),
        }
    }
}

impl ReaderLine {
    fn of(found: &[ReaderResult], scheme: Scheme, load: Load) -> ReaderLine {
        let cells = SHOWN.map(|bytes| {
            let result = find(found, scheme, load, bytes)?;
            Some(ReaderCell { trials: result.mean_trials(), starved_percent: result.starved_percent() })
        });
        ReaderLine { reader: scheme.name(), load: load.name(), cells }
    }
}

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
