//! How long programs really keep the processor: effective quanta (KLogger paper, §9.1, figure 5).

mod program;

use std::path::Path;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_plot::{self as plot, Axis, Series};
use serde_json::{Value, json};

use self::program::{EVENTS, ProgramQuanta};
use super::cdf::{self, Distribution};
use super::of_trace::{self, loss};
use super::workloads::{COMPUTATION, MAKE, WORKLOADS};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, StudyResults, about, measure_each};

/// How long each program is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_secs(5), Duration::from_millis(1000)];
/// The number of programs that are shown of a recorded trace: those that used the processors most.
const SHOWN: usize = 12;

/// The paper's maximum quantum.
const PAPERS_QUANTUM_US: f64 = 100_000.0;

pub(crate) struct Quanta;

impl Study for Quanta {
    about!("quanta", "how long programs really keep the processor: effective quanta (KLogger figure 5)");
    type Found = Vec<ProgramQuanta>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let time = WATCHED[usize::from(options.is_quick)];
        measure_each("programs", WORKLOADS.iter(), report, progress, |workload, progress| {
            let quanta = ProgramQuanta::watch(workload, time, progress);
            (rows(workload.name, workload.about, quanta.as_ref()), quanta.ok())
        })
    }

    /// There is no verdict on a program that shared the processors with others, because the others ended its
    /// quanta.
    fn findings(all: &Self::Found) -> Findings {
        vec![
            ("interactive", interactive(all)),
            ("make", find(all, MAKE).and_then(make)),
            ("computation", find(all, COMPUTATION).and_then(computation)),
        ]
    }

    fn facts(all: &Self::Found) -> Value {
        let programs = all.iter().map(|of| json!({ "of": of, "short_percent": of.short_percent() }));
        json!({
            "make_us": us(all, MAKE),
            "computation_us": us(all, COMPUTATION),
            "programs": programs.collect::<Vec<_>>(),
        })
    }

    fn pictures(all: &Self::Found) -> Vec<StudyFile> {
        vec![drawn(&series(all))]
    }

    fn data(all: &Self::Found, _: &Report) -> Vec<StudyFile> {
        vec![cdf::file(&series(all), "us")]
    }
}

/// The study of a recorded trace: the programs that used the processors most.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = of_trace::open(directory, "scheduler", &EVENTS)?;
    let mut all = ProgramQuanta::all_of(&recorded);
    all.truncate(SHOWN);
    let rows = all.iter().flat_map(|quanta| rows(&quanta.name, "", Ok(quanta))).collect();
    let files = vec![drawn(&series(&all)), cdf::file(&series(&all), "us")];
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

/// All programs except make and the computation have short quanta.
fn interactive(all: &[ProgramQuanta]) -> Option<Finding> {
    let programs = || all.iter().filter(|of| of.name != MAKE && of.name != COMPUTATION);
    let parts = || programs().filter_map(|of| Some((&of.name, of.short_part()?)));
    parts().next()?;
    let others_percent = programs().map(|of| of.others_percent).fold(0.0, f64::max);
    let holds = parts().all(|(_, part)| part >= 0.85);
    let programs = parts().map(|(name, part)| json!({ "name": name, "percent": 100.0 * part }));
    let values = json!({ "programs": programs.collect::<Vec<_>>() });
    Some(Finding::new(values, holds).unless_busy(others_percent))
}

/// Nine in ten quanta of a compilation are shorter than about a millisecond.
fn make(make: &ProgramQuanta) -> Option<Finding> {
    let us = make.us.quantile(0.9)?;
    let holds = (500.0..=2_000.0).contains(&us);
    Some(Finding::new(json!({ "nine_in_ten_us": us }), holds).unless_busy(make.others_percent))
}

/// Most quanta of the computation are shorter than the paper's longest one.
fn computation(computation: &ProgramQuanta) -> Option<Finding> {
    let part = computation.us.part_below(PAPERS_QUANTUM_US)?;
    let half_ms = computation.us.half()? / 1e3;
    let values = json!({ "long_percent": 100.0 * (1.0 - part), "half_ms": half_ms });
    Some(Finding::new(values, part >= 0.5).unless_busy(computation.others_percent))
}

fn drawn(series: &[Series]) -> StudyFile {
    let across = Axis::logarithmic("effective quantum, us");
    let up = Axis::linear("percent of quanta that are not longer");
    ("quanta.svg".to_owned(), plot::lines("How long programs keep the processor", &across, &up, series))
}

fn series(all: &[ProgramQuanta]) -> Vec<Series> {
    all.iter().map(|quanta| quanta.us.series(&quanta.name)).collect()
}

#[cfg(test)]
mod tests {
    use mete_measure::Verdict;

    use super::*;

    #[test]
    fn klog_9_a_program_that_is_missing_has_rows_that_say_so() {
        let rows = rows("x", "", Err(&Reason::new("x is not installed")));
        assert!(
            rows.iter().all(|row| row.median.is_none() && row.note.contains("x is not installed")),
            "{rows:?}"
        );
    }

    fn quanta(name: &str, us: &[f64]) -> ProgramQuanta {
        let us = Distribution::of(us.to_vec());
        ProgramQuanta { name: name.to_owned(), us, ..ProgramQuanta::default() }
    }

    fn verdicts(all: &[ProgramQuanta]) -> Vec<Verdict> {
        crate::study::verdicts(Quanta::findings(&all.to_vec()))
    }

    #[test]
    fn klog_9_quanta_as_in_the_paper_agree_and_others_differ() {
        let papers = [
            quanta("find", &[10.0, 20.0, 90.0]),
            quanta(MAKE, &[1_000.0, 1_000.0]),
            quanta(COMPUTATION, &[50_000.0, 60_000.0, 100_000.0]),
        ];
        assert_eq!(verdicts(&papers), [Verdict::Holds; 3]);
        let others =
            [quanta("find", &[200.0]), quanta(MAKE, &[9.0]), quanta(COMPUTATION, &[100_000.0, 200_000.0])];
        assert_eq!(verdicts(&others), [Verdict::Fails; 3]);
        assert_eq!(verdicts(&[]), [Verdict::NotMeasured; 3]);
    }
}
