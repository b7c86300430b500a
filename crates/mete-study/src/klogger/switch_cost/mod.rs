//! What scheduling costs against the number of processes (KLogger paper, §9.3, figure 7).

mod costs;

use std::path::Path;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_plot::{self as plot, Axis, Series};
use serde_json::{Value, json};

use self::costs::{EVENTS, SwitchCosts, between};
use super::of_trace::{self, loss};
use crate::study::{
    Finding, Findings, Study, StudyFile, StudyOptions, StudyResults, about, is_noisy, measure_each,
};

/// The numbers of processes that compete for one processor: the paper's, and more.
const PROCESSES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// How long each number is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_secs(3), Duration::from_millis(400)];

pub(crate) struct SwitchCost;

impl Study for SwitchCost {
    about!("switch-cost", "what scheduling costs against the number of processes (KLogger figure 7)");
    type Found = Vec<SwitchCosts>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let time = WATCHED[usize::from(options.is_quick)];
        let what = "numbers of processes";
        measure_each(what, PROCESSES.into_iter(), report, progress, |processes, progress| {
            let costs = SwitchCosts::measure(processes, time, progress);
            (rows(processes, &costs), costs.ok())
        })
    }

    fn findings(all: &Self::Found) -> Findings {
        let of = |processes| find(all, processes);
        vec![
            ("total", of(1).zip(of(8)).map(|(single, eight)| total(single, eight))),
            ("growth", of(2).zip(of(128)).and_then(|(few, many)| growth(few, many))),
        ]
    }

    fn facts(all: &Self::Found) -> Value {
        let numbers = [2, 128].map(|processes| find(all, processes));
        json!({
            "choosing_ns": numbers.map(|costs| costs?.choosing.half()),
            "switching_ns": numbers.map(|costs| costs?.switching.half()),
            "numbers": all,
        })
    }

    fn pictures(all: &Self::Found) -> Vec<StudyFile> {
        // The paper's plot: the time spent in a second, by its two parts.
        let second = [
            series(all, "both", |costs| Some(costs.ms_a_second)),
            series(all, "choosing", |costs| Some(costs.choosing_ms_a_second())),
            series(all, "switching", |costs| Some(costs.ms_a_second - costs.choosing_ms_a_second())),
        ];
        let switch = [
            series(all, "choosing", |costs| costs.choosing.half()),
            series(all, "switching", |costs| costs.switching.half()),
        ];
        vec![
            drawn("a-second.svg", "Scheduling in a second", "ms", &second),
            drawn("a-switch.svg", "A switch", "ns, median", &switch),
        ]
    }
}

/// The study of a recorded trace: how often each processor switched, and how long the switch itself took
/// between its two events.
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

/// One process pays more than twice what eight pay together.
fn total(single: &SwitchCosts, eight: &SwitchCosts) -> Finding {
    let [one, many] = [single, eight].map(|costs| costs.ms_a_second);
    let values = json!({ "one_ms": one, "eight_ms": many });
    unless_disturbed(Finding::new(values, one > 2.0 * many), [single, eight])
}

/// Choosing takes more than twice as long among many processes.
fn growth(few: &SwitchCosts, many: &SwitchCosts) -> Option<Finding> {
    let (few_ns, many_ns) = (few.choosing.half()?, many.choosing.half()?);
    let values = json!({ "few_ns": few_ns, "many_ns": many_ns });
    Some(unless_disturbed(Finding::new(values, many_ns > 2.0 * few_ns), [few, many]))
}

/// The finding, without a verdict if one of its measurements was disturbed. Both claims depend on the time of
/// choosing, switch by switch.
fn unless_disturbed(finding: Finding, of: [&SwitchCosts; 2]) -> Finding {
    // Other processes must not have disturbed either of the two numbers that are compared.
    let others_percent = of.iter().map(|costs| costs.others_percent).fold(0.0, f64::max);
    let is_noisy = of.iter().any(|costs| is_noisy(costs.choosing.values()));
    finding.unless_busy(others_percent).unless_noisy(is_noisy)
}

fn series(all: &[SwitchCosts], name: &str, of: fn(&SwitchCosts) -> Option<f64>) -> Series {
    Series::new(name, all.iter().filter_map(|costs| Some((costs.processes as f64, of(costs)?))))
}

fn drawn(file: &str, title: &str, unit: &str, series: &[Series]) -> StudyFile {
    (file.to_owned(), plot::lines(title, &Axis::logarithmic("processes"), &Axis::linear(unit), series))
}

#[cfg(test)]
mod tests {
    use mete_measure::Verdict;

    use super::*;
    use crate::klogger::cdf::Distribution;

    fn costs(processes: usize, choosing: f64, ms_a_second: f64) -> SwitchCosts {
        let [choosing, switching] = [choosing, 500.0].map(|ns| Distribution::of(vec![ns]));
        SwitchCosts { processes, choosing, switching, ms_a_second, ..SwitchCosts::default() }
    }

    fn verdicts(all: &[SwitchCosts]) -> Vec<Verdict> {
        crate::study::verdicts(SwitchCost::findings(&all.to_vec()))
    }

    fn papers() -> [SwitchCosts; 4] {
        [costs(1, 900.0, 30.2), costs(2, 200.0, 20.0), costs(8, 400.0, 13.2), costs(128, 9e3, 90.0)]
    }

    #[test]
    fn klog_9_scheduling_as_in_the_paper_agrees_and_others_differ() {
        assert_eq!(verdicts(&papers()), [Verdict::Holds; 2]);
        let ours = [costs(1, 900.0, 0.1), costs(2, 900.0, 1.0), costs(8, 900.0, 1.0), costs(128, 1e3, 1.0)];
        assert_eq!(verdicts(&ours), [Verdict::Fails; 2]);
        assert_eq!(verdicts(&ours[..1]), [Verdict::NotMeasured; 2]);
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_switches_most_of_which_take_far_longer_than_the_least() {
        let mut all = papers();
        all[3].choosing = Distribution::of(vec![3_000.0, 9_000.0, 9_100.0]);
        assert_eq!(verdicts(&all), [Verdict::Holds, Verdict::TooNoisy]);
        all[0].choosing = Distribution::of(vec![800.0, 881.0, 900.0]);
        assert_eq!(verdicts(&all), [Verdict::TooNoisy; 2]);
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_switches_beside_others() {
        let mut all = papers();
        all[2].others_percent = 10.5;
        assert_eq!(verdicts(&all), [Verdict::TooNoisy, Verdict::Holds]);
        let total = SwitchCost::findings(&all.into()).swap_remove(0).1.expect("both numbers were measured");
        assert_eq!(total.others_percent, Some(10.5));
    }
}
