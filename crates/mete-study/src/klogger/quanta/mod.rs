//! How long programs really keep the processor: effective quanta (KLogger paper, §9.1, figure 5).

mod findings;
mod picture;
mod program;

use std::path::Path;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use serde::Serialize;
use serde_json::json;

use self::program::{EVENTS, ProgramQuanta};
use crate::klogger::cdf::Distribution;
use crate::klogger::of_trace::{self, loss};
use crate::klogger::workloads::{COMPUTATION, MAKE, WORKLOADS};
use crate::study::{Findings, Study, StudyFile, StudyOptions, StudyResults, StudyTexts, texts};

/// How long each program is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_secs(5), Duration::from_millis(1000)];
/// The number of programs that are shown of a recorded trace: those that used the processors most.
const SHOWN: usize = 12;

pub(crate) struct Quanta;

impl Study for Quanta {
    const NAME: &'static str = "quanta";
    const SHOWS: &'static str =
        "how long programs really keep the processor: effective quanta (KLogger figure 5)";
    const TEXTS: StudyTexts = texts!("quanta");
    const IS_SIMULATED: bool = false;
    type Found = Vec<ProgramQuanta>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let time = WATCHED[usize::from(options.is_quick)];
        let mut all = Vec::new();
        progress.begin("programs", WORKLOADS.len() as u64);
        for workload in &WORKLOADS {
            if progress.is_cancelled() {
                break;
            }
            let quanta = ProgramQuanta::watch(workload, time, progress);
            report.rows.extend(rows(workload.name, workload.about, quanta.as_ref()));
            all.extend(quanta);
            progress.step();
        }
        all
    }

    fn findings(all: &Self::Found) -> Findings {
        findings::of(all)
    }

    fn facts(all: &Self::Found) -> impl Serialize {
        let programs = all.iter().map(|of| json!({ "of": of, "short_percent": of.short_percent() }));
        json!({
            "make_us": us(all, MAKE),
            "computation_us": us(all, COMPUTATION),
            "programs": programs.collect::<Vec<_>>(),
        })
    }

    fn pictures(all: &Self::Found) -> Vec<StudyFile> {
        vec![picture::drawn(all)]
    }

    fn data(all: &Self::Found, _: &Report) -> Vec<StudyFile> {
        vec![picture::distribution(all)]
    }
}

/// The study of a recorded trace: the programs that used the processors most.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = of_trace::open(directory, "scheduler", &EVENTS)?;
    let mut all = ProgramQuanta::all_of(&recorded);
    all.truncate(SHOWN);
    let rows = all.iter().flat_map(|quanta| rows(&quanta.name, "", Ok(quanta))).collect();
    let files = vec![picture::drawn(&all), picture::distribution(&all)];
    Ok(of_trace::results::<Quanta>(directory, rows, files))
}

fn find<'a>(all: &'a [ProgramQuanta], name: &str) -> Option<&'a ProgramQuanta> {
    all.iter().find(|quanta| quanta.name == name)
}

/// The quanta of this program, in microseconds. Empty if it was not measured.
fn us(all: &[ProgramQuanta], name: &str) -> Distribution {
    find(all, name).map(|quanta| quanta.us.clone()).unwrap_or_default()
}

fn rows(name: &str, about: &str, quanta: Result<&ProgramQuanta, &Reason>) -> Vec<Row> {
    let row = |what: &str, unit, samples: fn(&ProgramQuanta) -> Vec<f64>| {
        Row::new(format!("{name}: {what}"), unit, quanta.map(samples).map_err(Clone::clone))
    };
    let lost = quanta.map_or(0, |quanta| quanta.lost);
    vec![
        row("effective quantum", "us", |quanta| quanta.us.values().to_vec()).note(about).note(loss(lost)),
        row("nine in ten are shorter than", "us", |quanta| quanta.us.quantile(0.9).into_iter().collect()),
        row("shorter than 100 us", "percent", |quanta| quanta.short_percent().into_iter().collect()),
        row("ended by preemption", "percent", |quanta| quanta.preempted_percent().into_iter().collect()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_a_program_that_is_missing_has_rows_that_say_so() {
        let rows = rows("x", "", Err(&Reason::new("x is not installed")));
        assert!(
            rows.iter().all(|row| row.median.is_none() && row.note.contains("x is not installed")),
            "{rows:?}"
        );
    }
}
