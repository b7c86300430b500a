//! The effective quanta of one program.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use mete_base::progress::Progress;
use mete_bench::recording::{Recorded, ScratchRecording};
use mete_bench::scratch::Scratch;
use mete_measure::Reason;
use mete_trace::{NamedItem, ProcessNames};
use serde::Serialize;

use crate::klogger::cdf::Distribution;
use crate::klogger::workloads::Workload;
use crate::trace::{Run, Runs, Usage};

/// The events that are recorded.
pub(super) const EVENTS: [&str; 5] = ["SCHEDIN", "SCHEDOUT", "FORK", "EXEC", "EXIT"];
/// The limit of a short quantum: a thousandth of the maximum quantum in the paper (§9.1).
const SHORT_US: f64 = 100.0;

/// The effective quanta of one program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ProgramQuanta {
    pub name: String,
    /// The lengths of the quanta in microseconds.
    pub us: Distribution,
    /// The number of quanta that ended by preemption.
    pub preempted: usize,
    /// Percent of all processors' time that other processes used.
    pub others_percent: f64,
    /// Events that the trace has lost.
    pub lost: u64,
}

impl ProgramQuanta {
    fn of(name: &str, runs: &[Run], lost: u64) -> ProgramQuanta {
        ProgramQuanta {
            name: name.to_owned(),
            us: Distribution::of(runs.iter().map(|run| run.ns() as f64 / 1e3).collect()),
            preempted: runs.iter().filter(|run| run.is_preempted).count(),
            lost,
            ..ProgramQuanta::default()
        }
    }

    /// Measures the quanta of a program and of all processes that it starts.
    pub(super) fn watch(
        workload: &Workload,
        time: Duration,
        progress: &dyn Progress,
    ) -> Result<ProgramQuanta, Reason> {
        let scratch = Scratch::new()?;
        // Recorded from before the start on, because a family is known by its forks.
        let session = ScratchRecording::begin("scheduler", &EVENTS)?;
        let mut started = (workload.start)(scratch.path())?;
        started.load.wait(time, progress);
        let pid = started.load.pid();
        let recorded = session.end()?;
        drop(started);
        let runs = of_family(&recorded, pid, Runs::of_own_recording());
        let usage = Usage::of(&recorded, Runs::of_own_recording());
        let own = usage.percent(total_ns(&runs));
        // The program's own runs are among all runs, so the rest is what other processes used.
        let others_percent = (usage.others_percent(|_| false) - own).max(0.0);
        Ok(ProgramQuanta { others_percent, ..ProgramQuanta::of(workload.name, &runs, recorded.lost()) })
    }

    /// All programs of a trace. Those that used the processors most come first.
    pub(super) fn all_of(recorded: &Recorded) -> Vec<ProgramQuanta> {
        let mut by_name: Vec<_> = by_name(recorded).into_iter().collect();
        by_name.sort_by_key(|(_, runs)| Reverse(total_ns(runs)));
        by_name.iter().map(|(name, runs)| ProgramQuanta::of(name, runs, recorded.lost())).collect()
    }

    /// The part of the quanta (0 to 1) that are short; `None` without quanta.
    pub(super) fn short_part(&self) -> Option<f64> {
        self.us.part_below(SHORT_US)
    }

    /// The same in percent.
    pub(super) fn short_percent(&self) -> Option<f64> {
        self.short_part().map(|part| 100.0 * part)
    }

    /// Percent of the quanta that ended by preemption; `None` without quanta.
    pub(super) fn preempted_percent(&self) -> Option<f64> {
        let part = self.preempted as f64 / self.us.values().len() as f64;
        // Without quanta the quotient is 0/0.
        (!part.is_nan()).then_some(100.0 * part)
    }
}

/// The ids of a process and of its descendants, including threads.
struct Family {
    pids: HashSet<i32>,
}

impl Family {
    /// The family of this process, which has not started another one yet.
    fn of(pid: i32) -> Family {
        Family { pids: HashSet::from([pid]) }
    }

    /// Takes the next item of the trace: a child of a member becomes a member.
    fn next(&mut self, next: &NamedItem<'_>) {
        if let NamedItem::Event(seen) = next
            && seen.name() == "FORK"
            && self.has(seen.pid("parent"))
        {
            self.pids.insert(seen.pid("child"));
        }
    }

    /// Whether a process belongs to the family.
    fn has(&self, pid: i32) -> bool {
        self.pids.contains(&pid)
    }
}

fn total_ns(runs: &[Run]) -> u64 {
    runs.iter().map(Run::ns).sum()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::written::Written;

    /// Process ids of a program, its child and a stranger. No machine has such ids, so no process has a name
    /// for them.
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
        let quanta = ProgramQuanta::of("x", &of_family(&written(), PROGRAM as i32, Runs::default()), 0);
        assert_eq!(quanta.us.values(), [2.0, 4.0, 6.0]);
        assert_eq!(quanta.preempted, 1);
        let rows = super::super::rows("x", "", Ok(&quanta));
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
    fn klog_9_children_of_children_belong_to_a_family_and_others_do_not() {
        let mut written = Written::new("scheduler", 1);
        written.event(0, 10, "FORK", &[("parent", 1), ("child", 2)]);
        written.event(0, 20, "FORK", &[("parent", 2), ("child", 3)]);
        written.event(0, 30, "FORK", &[("parent", 4), ("child", 5)]);
        let mut family = Family::of(1);
        written.read().each(|next| family.next(&next));
        assert_eq!([1, 2, 3, 4, 5].map(|pid| family.has(pid)), [true, true, true, false, false]);
    }
}
