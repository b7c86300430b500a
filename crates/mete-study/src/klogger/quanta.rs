//! How long programs really keep the processor: effective quanta (KLogger paper, §9.1, figure 5).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::cdf::Distribution;
use super::quanta_page;
use super::workloads::{WORKLOADS, Workload};
use crate::study::{StudyOptions, StudyResults};
use crate::trace::{Family, Run, Runs, Usage};
use mete_base::progress::Progress;
use mete_bench::recording::{Recorded, Session};
use mete_bench::scratch::Scratch;
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use mete_trace::ProcessNames;

/// The events that are recorded.
const EVENTS: [&str; 5] = ["SCHEDIN", "SCHEDOUT", "FORK", "EXEC", "EXIT"];
/// How long each program is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_secs(5), Duration::from_millis(1000)];
/// The number of programs that are shown of a recorded trace: those that used the processors most.
const SHOWN: usize = 12;

/// The effective quanta of one program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quanta {
    pub name: String,
    /// The lengths of the quanta in microseconds.
    pub us: Distribution,
    /// The number of quanta that ended by preemption.
    pub preempted: usize,
    /// Percent of all processors' time that other processes used.
    pub others: f64,
    /// Events that the trace has lost.
    pub lost: u64,
}

impl Quanta {
    fn of(name: &str, runs: &[Run], lost: u64) -> Quanta {
        Quanta {
            name: name.to_owned(),
            us: Distribution::of(runs.iter().map(|run| run.ns() as f64 / 1e3).collect()),
            preempted: runs.iter().filter(|run| run.is_preempted).count(),
            others: 0.0,
            lost,
        }
    }
}

pub(crate) fn study(options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
    let mut report = Report::new("mete study quanta");
    let mut all = Vec::new();
    progress.begin("programs", WORKLOADS.len() as u64);
    for workload in &WORKLOADS {
        if progress.is_cancelled() {
            break;
        }
        let quanta = watch(workload, WATCHED[usize::from(options.is_quick)], progress);
        report.rows.extend(rows(workload.name, workload.about, quanta.as_ref()));
        all.extend(quanta);
        progress.step();
    }
    report.is_complete = !progress.is_cancelled();
    quanta_page::study(report, &all)
}

/// The study of a recorded trace: the programs that used the processors most.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = Recorded::open(directory)?;
    recorded.needs("scheduler", &EVENTS)?;
    let mut by_name: Vec<_> = by_name(&recorded).into_iter().collect();
    by_name.sort_by_key(|(_, runs)| std::cmp::Reverse(runs.iter().map(Run::ns).sum::<u64>()));
    by_name.truncate(SHOWN);
    let lost = recorded.lost();
    let all: Vec<Quanta> = by_name.iter().map(|(name, runs)| Quanta::of(name, runs, lost)).collect();
    let mut report = Report::new(format!("mete study quanta --trace {}", directory.display()));
    report.rows.extend(all.iter().flat_map(|quanta| rows(&quanta.name, "", Ok(quanta))));
    Ok(quanta_page::of_trace(report, &all))
}

/// Measures the quanta of a program and of all processes that it starts.
fn watch(workload: &Workload, time: Duration, progress: &dyn Progress) -> Result<Quanta, Reason> {
    let scratch = Scratch::new()?;
    let session = Session::begin("scheduler", &EVENTS)?;
    let mut started = (workload.start)(scratch.path())?;
    started.load.wait(time, progress);
    let pid = started.load.pid();
    let recorded = session.end()?;
    drop(started);
    let runs = of_family(&recorded, pid, Runs::of_own_recording());
    let usage = Usage::of(&recorded, Runs::of_own_recording());
    let own = usage.percent(runs.iter().map(Run::ns).sum());
    // The program's own runs are among all runs, so the rest is what other processes used.
    let others = (usage.others_percent(|_| false) - own).max(0.0);
    Ok(Quanta { others, ..Quanta::of(workload.name, &runs, recorded.lost()) })
}

fn of_family(recorded: &Recorded, pid: i32, mut runs: Runs) -> Vec<Run> {
    let (mut family, mut all) = (Family::of(pid), Vec::new());
    recorded.each(|next| {
        family.next(&next);
        all.extend(runs.next(&next).filter(|run| family.has(run.pid)));
    });
    all
}

fn by_name(recorded: &Recorded) -> BTreeMap<String, Vec<Run>> {
    let (mut names, mut runs) = (ProcessNames::of_trace(recorded), Runs::default());
    let mut all = BTreeMap::<String, Vec<Run>>::new();
    recorded.each(|next| {
        names.take(&next);
        if let Some(run) = runs.next(&next).filter(|run| run.pid != 0) {
            all.entry(names.of(run.pid)).or_default().push(run);
        }
    });
    all
}

fn rows(name: &str, about: &str, quanta: Result<&Quanta, &Reason>) -> Vec<Row> {
    let us = quanta.map(|quanta| quanta.us.values().to_vec()).map_err(Clone::clone);
    let nine_in_ten =
        quanta.map_err(Clone::clone).map(|quanta| quanta.us.quantile(0.9).into_iter().collect());
    let below = quanta.map_err(Clone::clone).map(|quanta| {
        let part = quanta.us.part_below(quanta_page::SHORT_US);
        part.map(|part| 100.0 * part).into_iter().collect()
    });
    let preempted = quanta.map_err(Clone::clone).map(|quanta| {
        let part = quanta.preempted as f64 / quanta.us.values().len() as f64;
        // Without quanta the quotient is 0/0.
        if part.is_nan() { Vec::new() } else { vec![100.0 * part] }
    });
    let loss = quanta.map_or_else(|_| String::new(), |quanta| super::page::loss(quanta.lost));
    vec![
        Row::new(format!("{name}: effective quantum"), "us", us).note(about).note(loss),
        Row::new(format!("{name}: nine in ten are shorter than"), "us", nine_in_ten),
        Row::new(format!("{name}: shorter than 100 us"), "percent", below),
        Row::new(format!("{name}: ended by preemption"), "percent", preempted),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::written::Written;

    /// Process ids of a program, its child and a stranger. No machine has such ids, so no process has a name for them.
    const PROGRAM: i64 = 5_000_007;
    const CHILD: i64 = 5_000_008;
    const STRANGER: i64 = 5_000_009;

    fn written() -> Recorded {
        let mut written = Written::new("scheduler", 1);
        let run = |written: &mut Written, pid, from, to| {
            written.event(0, from, "SCHEDIN", &[("pid", pid)]);
            written.event(0, to, "SCHEDOUT", &[("pid", pid), ("state", i64::from(pid != CHILD))]);
        };
        run(&mut written, PROGRAM, 1_000, 3_000);
        written.event(0, 3_000, "FORK", &[("parent", PROGRAM), ("child", CHILD)]);
        run(&mut written, STRANGER, 3_000, 9_000);
        run(&mut written, CHILD, 9_000, 13_000);
        run(&mut written, PROGRAM, 13_000, 19_000);
        written.read()
    }

    #[test]
    fn klog_9_quanta_are_those_of_a_program_and_its_children() {
        let quanta = Quanta::of("x", &of_family(&written(), PROGRAM as i32, Runs::default()), 0);
        assert_eq!(quanta.us.values(), [2.0, 4.0, 6.0]);
        assert_eq!(quanta.preempted, 1);
        let rows = rows("x", "", Ok(&quanta));
        let medians: Vec<_> = rows.iter().map(|row| row.median).collect();
        assert_eq!(medians, [Some(4.0), Some(5.6), Some(100.0), Some(100.0 * (1.0 / 3.0))]);
    }

    #[test]
    fn klog_9_quanta_of_a_trace_are_told_by_program() {
        let by_name = by_name(&written());
        let counts: Vec<_> = by_name.iter().map(|(name, runs)| (name.as_str(), runs.len())).collect();
        assert_eq!(counts, [("", 1), ("process 5000007", 2), ("process 5000009", 1)]);
    }

    #[test]
    fn klog_9_a_program_that_is_missing_has_rows_that_say_so() {
        let rows = rows("x", "", Err(&Reason::new("x is not installed")));
        assert!(
            rows.iter().all(|row| row.median.is_none() && row.note.contains("x is not installed")),
            "{rows:?}"
        );
    }
}
