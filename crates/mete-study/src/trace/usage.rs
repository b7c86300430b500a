//! The processor time of each process.

use std::collections::HashMap;

use super::{Run, Runs};
use mete_bench::recording::Recorded;

/// What one process used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// How long it ran.
    pub ns: u64,
    /// The number of runs that were on another processor than the run before.
    pub migrations: u32,
    last: Option<u32>,
}

/// What each process used during a recording.
#[derive(Debug, Default)]
pub struct Usage {
    by_pid: HashMap<i32, Used>,
    /// The time of all processors together.
    all_ns: u64,
}

impl Usage {
    /// The usage during a whole recording.
    pub fn of(recorded: &Recorded, mut runs: Runs) -> Usage {
        let all_ns = recorded.duration_ns() * recorded.processors() as u64;
        let mut usage = Usage { by_pid: HashMap::new(), all_ns };
        recorded.each(|next| {
            // Process 0 is the idle task, which uses nothing.
            if let Some(run) = runs.next(&next).filter(|run| run.pid != 0) {
                usage.add(&run);
            }
        });
        usage
    }

    /// Adds a run. The runs of a process must come in their order.
    fn add(&mut self, run: &Run) {
        let used = self.by_pid.entry(run.pid).or_default();
        used.ns += run.ns();
        used.migrations += u32::from(used.last.is_some_and(|last| last != run.processor));
        used.last = Some(run.processor);
    }

    /// What one process used.
    pub fn of_process(&self, pid: i32) -> Used {
        self.by_pid.get(&pid).copied().unwrap_or_default()
    }

    /// All processes that ran, in no particular order.
    pub fn processes(&self) -> impl Iterator<Item = (i32, Used)> {
        self.by_pid.iter().map(|(pid, used)| (*pid, *used))
    }

    /// Percent of all processors' time.
    pub fn percent(&self, ns: u64) -> f64 {
        100.0 * ns as f64 / self.all_ns.max(1) as f64
    }

    /// Percent of all processors' time that processes used for which `is_ours` is false.
    pub fn others_percent(&self, is_ours: impl Fn(i32) -> bool) -> f64 {
        let others = self.by_pid.iter().filter(|(pid, _)| !is_ours(**pid));
        self.percent(others.map(|(_, used)| used.ns).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::written::Written;

    #[test]
    fn klog_9_a_migration_is_a_run_on_another_processor_than_the_last() {
        let mut written = Written::new("scheduler", 2);
        let mut run = |processor, pid, from, to| {
            written.event(processor, from, "SCHEDIN", &[("pid", pid), ("tgid", pid)]);
            written.event(processor, to, "SCHEDOUT", &[("pid", pid), ("state", 1)]);
        };
        run(0, 7, 1_000, 2_000);
        run(0, 7, 2_500, 2_700);
        run(1, 9, 2_600, 4_000);
        run(1, 7, 4_000, 4_300);
        run(0, 0, 2_700, 5_000);
        let usage = Usage::of(&written.read(), Runs::default());
        assert_eq!(usage.of_process(7), Used { ns: 1_500, migrations: 1, last: Some(1) });
        assert_eq!(usage.of_process(9), Used { ns: 1_400, migrations: 0, last: Some(1) });
        let usage = Usage { all_ns: 5_600, ..usage };
        assert_eq!(usage.others_percent(|pid| pid == 7), 25.0, "an idle processor is nobody's");
    }
}
