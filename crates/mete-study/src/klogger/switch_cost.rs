//! What scheduling costs against the number of processes (KLogger paper, §9.3, figure 7).

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use super::cdf::Distribution;
use super::{page, pause, switch_cost_page};
use crate::study::{StudyOptions, StudyResults};
use crate::trace::{Runs, Usage};
use mete_base::progress::Progress;
use mete_bench::crew::Crew;
use mete_bench::recording::{Recorded, Session};
use mete_bench::watch::{self, Gap};
use mete_measure::processor;
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use mete_trace::NamedItem;

const EVENTS: [&str; 2] = ["SCHEDIN", "SCHEDOUT"];
/// The numbers of processes that compete for one processor: the paper's, and more.
const PROCESSES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// The number of gaps that each process keeps.
const GAPS: usize = 8_192;
/// How long each number is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_secs(3), Duration::from_millis(400)];

/// The costs with one number of processes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Costs {
    pub processes: usize,
    /// Nanoseconds from the last instant of the process that leaves to its SCHEDOUT: entering the kernel and choosing
    /// the next process.
    pub choosing: Distribution,
    /// Nanoseconds from a SCHEDIN to the first instant of the process that comes: switching to it and leaving the
    /// kernel.
    pub switching: Distribution,
    /// The milliseconds that both took together in a second: those of the gaps that were kept, so a lower bound.
    pub ms_a_second: f64,
    /// Percent of all processors' time that other processes used.
    pub others: f64,
    /// Events that the trace has lost.
    pub lost: u64,
}

pub(crate) fn study(options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
    let mut report = Report::new("mete study switch-cost");
    let mut all = Vec::new();
    progress.begin("numbers of processes", PROCESSES.len() as u64);
    for processes in PROCESSES {
        if progress.is_cancelled() {
            break;
        }
        let costs = measure(processes, WATCHED[usize::from(options.is_quick)], progress);
        report.rows.extend(rows(processes, &costs));
        all.extend(costs);
        progress.step();
    }
    report.is_complete = !progress.is_cancelled();
    switch_cost_page::study(report, &all)
}

fn measure(processes: usize, time: Duration, progress: &dyn Progress) -> Result<Costs, Reason> {
    let processor = processor::quietest();
    let crew = Crew::start(&vec![Some(processor); processes], watch::words(GAPS), watch::watch)?;
    let session = Session::begin("scheduler", &EVENTS)?;
    crew.go();
    let passed = pause(time, progress);
    crew.stop();
    let recorded = session.end()?;
    let pids = crew.pids();
    let others = Usage::of(&recorded, Runs::of_own_recording()).others_percent(|pid| pids.contains(&pid));
    let watched: Vec<_> =
        pids.into_iter().enumerate().map(|(nth, pid)| (pid, watch::gaps(crew.words(nth)))).collect();
    let (choosing, switching) = parts(&recorded, &watched);
    let total: f64 = choosing.iter().chain(&switching).sum();
    Ok(Costs {
        processes,
        choosing: Distribution::of(choosing),
        switching: Distribution::of(switching),
        ms_a_second: total / 1e6 / passed.as_secs_f64(),
        others,
        lost: recorded.lost(),
    })
}

/// The costs before each SCHEDOUT and after each SCHEDIN of the processes that watch the clock. A gap in which a
/// process left and came several times does not show the cost of any single switch.
fn parts(recorded: &Recorded, watched: &[(i32, Vec<Gap>)]) -> (Vec<f64>, Vec<f64>) {
    let mut seen_of: HashMap<i32, Vec<(bool, u64)>> = HashMap::new();
    recorded.each(|next| {
        if let NamedItem::Event(seen) = next {
            let is_out = seen.name() == "SCHEDOUT";
            seen_of.entry(seen.pid("pid")).or_default().push((is_out, seen.time_ns));
        }
    });
    let (mut choosing, mut switching) = (Vec::new(), Vec::new());
    for (pid, gaps) in watched {
        let events = seen_of.get(pid).map(Vec::as_slice).unwrap_or_default();
        for gap in gaps {
            // The events of a process come in order of time.
            let first = events.partition_point(|(_, time_ns)| *time_ns < gap.from_ns);
            let last = events.partition_point(|(_, time_ns)| *time_ns <= gap.to_ns);
            // Exactly one SCHEDOUT and then one SCHEDIN in the gap.
            if let [(true, out_ns), (false, in_ns)] = events[first..last.max(first)] {
                choosing.push((out_ns - gap.from_ns) as f64);
                switching.push((gap.to_ns - in_ns) as f64);
            }
        }
    }
    (choosing, switching)
}

/// The study of a recorded trace: how often each processor switched, and how long the switch itself took between its
/// two events.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = Recorded::open(directory)?;
    recorded.needs("scheduler", &EVENTS)?;
    let mut between = vec![Vec::new(); recorded.processors()];
    let mut left = vec![None; recorded.processors()];
    recorded.each(|next| match next {
        NamedItem::Lost { processor } => left[processor as usize] = None,
        NamedItem::Event(seen) => match seen.name() {
            "SCHEDOUT" => left[seen.processor as usize] = Some(seen.time_ns),
            "SCHEDIN" => {
                let of = seen.processor as usize;
                between[of].extend(left[of].take().map(|left| (seen.time_ns - left) as f64));
            }
            _ => {}
        },
    });
    let mut report = Report::new(format!("mete study switch-cost --trace {}", directory.display()));
    for (processor, ns) in between.into_iter().enumerate() {
        let row = Row::new(format!("processor {processor}: from SCHEDOUT to SCHEDIN"), "ns", Ok(ns));
        report
            .rows
            .push(row.note("both are recorded where the kernel switches").note(page::loss(recorded.lost())));
    }
    Ok(switch_cost_page::of_trace(report))
}

fn rows(processes: usize, costs: &Result<Costs, Reason>) -> Vec<Row> {
    let name = |what: &str| {
        let plural = if processes == 1 { "" } else { "es" };
        format!("{processes} process{plural}: {what}")
    };
    let all = |of: fn(&Costs) -> Vec<f64>| costs.as_ref().map(of).map_err(Clone::clone);
    let loss = costs.as_ref().map_or_else(|_| String::new(), |costs| page::loss(costs.lost));
    vec![
        Row::new(name("choosing"), "ns", all(|costs| costs.choosing.values().to_vec())).note(loss),
        Row::new(name("switching"), "ns", all(|costs| costs.switching.values().to_vec())),
        Row::new(name("both, of a second"), "ms", all(|costs| vec![costs.ms_a_second])),
        Row::new(name("others' share"), "percent", all(|costs| vec![costs.others])).note("of all processors"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::written::Written;

    #[test]
    fn klog_9_a_switch_costs_what_lies_around_its_events_and_the_programs() {
        let mut written = Written::new("scheduler", 1);
        written.event(0, 1_300, "SCHEDOUT", &[("pid", 7)]);
        written.event(0, 1_320, "SCHEDIN", &[("pid", 8)]);
        written.event(0, 1_900, "SCHEDOUT", &[("pid", 8)]);
        written.event(0, 1_910, "SCHEDIN", &[("pid", 99)]);
        written.event(0, 6_000, "SCHEDOUT", &[("pid", 99)]);
        written.event(0, 6_010, "SCHEDIN", &[("pid", 7)]);
        written.event(0, 6_500, "SCHEDOUT", &[("pid", 7)]);
        let gap = |from_ns, to_ns| Gap { from_ns, to_ns };
        // Process 8 came and left without reading the clock in between.
        let watched = [(7, vec![gap(1_000, 6_400)]), (8, vec![gap(500, 9_000)])];
        let found = parts(&written.read(), &watched);
        assert_eq!(found, (vec![300.0], vec![390.0]));
    }
}
