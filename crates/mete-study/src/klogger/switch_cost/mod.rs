//! What scheduling costs against the number of processes (KLogger paper, §9.3, figure 7).

mod costs;
mod findings;
mod pictures;

use std::path::Path;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use serde::Serialize;
use serde_json::json;

use self::costs::{EVENTS, SwitchCosts, between};
use crate::klogger::of_trace::{self, loss};
use crate::study::{Findings, Study, StudyFile, StudyOptions, StudyResults, StudyTexts, texts};

/// The numbers of processes that compete for one processor: the paper's, and more.
const PROCESSES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// How long each number is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_secs(3), Duration::from_millis(400)];

pub(crate) struct SwitchCost;

impl Study for SwitchCost {
    const NAME: &'static str = "switch-cost";
    const SHOWS: &'static str = "what scheduling costs against the number of processes (KLogger figure 7)";
    const TEXTS: StudyTexts = texts!("switch-cost");
    const IS_SIMULATED: bool = false;
    type Found = Vec<SwitchCosts>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let time = WATCHED[usize::from(options.is_quick)];
        let mut all = Vec::new();
        progress.begin("numbers of processes", PROCESSES.len() as u64);
        for processes in PROCESSES {
            if progress.is_cancelled() {
                break;
            }
            let costs = SwitchCosts::measure(processes, time, progress);
            report.rows.extend(rows(processes, &costs));
            all.extend(costs);
            progress.step();
        }
        all
    }

    fn findings(all: &Self::Found) -> Findings {
        findings::of(all)
    }

    fn facts(all: &Self::Found) -> impl Serialize {
        let numbers = [2, 128].map(|processes| find(all, processes));
        json!({
            "choosing_ns": numbers.map(|costs| costs?.choosing.half()),
            "switching_ns": numbers.map(|costs| costs?.switching.half()),
            "numbers": all,
        })
    }

    fn pictures(all: &Self::Found) -> Vec<StudyFile> {
        vec![pictures::a_second(all), pictures::a_switch(all)]
    }

    fn data(_: &Self::Found, _: &Report) -> Vec<StudyFile> {
        Vec::new()
    }
}

/// The study of a recorded trace: how often each processor switched, and how long the switch itself took between its
/// two events.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = of_trace::open(directory, "scheduler", &EVENTS)?;
    let rows = between(&recorded).into_iter().enumerate().map(|(processor, ns)| {
        Row::new(format!("processor {processor}: from SCHEDOUT to SCHEDIN"), "ns", Ok(ns))
            .note("both are recorded where the kernel switches")
            .note(loss(recorded.lost()))
    });
    Ok(of_trace::results::<SwitchCost>(directory, rows.collect(), Vec::new()))
}

fn find(all: &[SwitchCosts], processes: usize) -> Option<&SwitchCosts> {
    all.iter().find(|costs| costs.processes == processes)
}

fn rows(processes: usize, costs: &Result<SwitchCosts, Reason>) -> Vec<Row> {
    let plural = if processes == 1 { "" } else { "es" };
    let row = |what: &str, unit, samples: fn(&SwitchCosts) -> Vec<f64>| {
        let samples = costs.as_ref().map(samples).map_err(Clone::clone);
        Row::new(format!("{processes} process{plural}: {what}"), unit, samples)
    };
    let lost = costs.as_ref().map_or(0, |costs| costs.lost);
    vec![
        row("choosing", "ns", |costs| costs.choosing.values().to_vec()).note(loss(lost)),
        row("switching", "ns", |costs| costs.switching.values().to_vec()),
        row("both, of a second", "ms", |costs| vec![costs.ms_a_second]),
        row("others' share", "percent", |costs| vec![costs.others_percent]).note("of all processors"),
    ]
}
