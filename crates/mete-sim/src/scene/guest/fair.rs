//! Least virtual run time first: the larger a task's weight, the slower its virtual time runs.
//!
//! This follows Linux's completely fair scheduler (2.6.23 on). A task that wakes is placed at most half a
//! latency behind the others, so that a sleeper gains a little and cannot save up more. It preempts the
//! present task if it is behind it by more than a granularity.

use mete_policy::Nanoseconds;

use super::scheduler::Scheduler;

/// The weight with which virtual time runs as fast as real time.
const UNIT_WEIGHT: u64 = 1024;

#[derive(Clone, Copy, Debug)]
struct FairTask {
    weight: u64,
    virtual_ns: u64,
}

/// Least virtual run time first, as in Linux's completely fair scheduler (2.6.23 on).
#[derive(Clone, Debug)]
pub struct Fair {
    /// The time in which every task runs once, if there are not too many tasks.
    latency_ns: Nanoseconds,
    /// The shortest slice.
    least_ns: Nanoseconds,
    tasks: Vec<FairTask>,
    /// The virtual run time of the last task chosen, or of an earlier one if that was larger: it never goes
    /// back.
    least_virtual_ns: u64,
}

impl Fair {
    /// A scheduler under which every task runs once in `latency_ns`, but for at least `least_ns` at a time.
    pub fn new(latency_ns: Nanoseconds, least_ns: Nanoseconds) -> Fair {
        Fair { latency_ns, least_ns, tasks: Vec::new(), least_virtual_ns: 0 }
    }

    /// Takes a task over and keeps its distance to the least virtual run time.
    pub(super) fn take_over(&mut self, task: usize, from: &Fair) {
        let ahead_ns = from.tasks[task].virtual_ns.saturating_add(self.least_virtual_ns);
        self.tasks[task].virtual_ns = ahead_ns.saturating_sub(from.least_virtual_ns);
    }

    fn first(&self, candidates: impl Fn(usize) -> bool) -> Option<usize> {
        let candidates = self.tasks.iter().enumerate().filter(|(task, _)| candidates(*task));
        candidates.min_by_key(|(task, state)| (state.virtual_ns, *task)).map(|(task, _)| task)
    }

    fn virtual_length(&self, task: usize, ns: Nanoseconds) -> u64 {
        // In 128 bits, because a time multiplied by the unit may not fit into 64.
        let length = u128::from(ns) * u128::from(UNIT_WEIGHT) / u128::from(self.tasks[task].weight);
        u64::try_from(length).unwrap_or(u64::MAX)
    }
}

/// Each step of niceness is a quarter more or less.
fn weight(nice: i32) -> u64 {
    let (up, down) = if nice < 0 { (5, 4) } else { (4, 5) };
    (0..nice.unsigned_abs()).fold(UNIT_WEIGHT, |weight, _| weight * up / down)
}

impl Scheduler for Fair {
    fn add(&mut self, nice: i32) {
        self.tasks.push(FairTask { weight: weight(nice), virtual_ns: self.least_virtual_ns });
    }

    fn woke(&mut self, task: usize, _slept_ns: Nanoseconds, current: Option<usize>) -> bool {
        let earliest = self.least_virtual_ns.saturating_sub((self.latency_ns / 2).get());
        let state = &mut self.tasks[task];
        // After a short sleep the task keeps its own virtual time.
        state.virtual_ns = state.virtual_ns.max(earliest);
        let woken_ns = state.virtual_ns;
        let granularity_ns = self.virtual_length(task, self.least_ns);
        current
            .is_some_and(|current| self.tasks[current].virtual_ns.saturating_sub(woken_ns) > granularity_ns)
    }

    fn choose(&mut self, ready: &[bool]) -> Option<usize> {
        let task = self.first(|task| ready[task])?;
        self.least_virtual_ns = self.least_virtual_ns.max(self.tasks[task].virtual_ns);
        Some(task)
    }

    fn spare(&self, ready: &[bool], current: Option<usize>) -> Option<usize> {
        self.first(|task| ready[task] && current != Some(task))
    }

    fn slice_ns(&self, _task: usize, ready: usize) -> Nanoseconds {
        (self.latency_ns / ready.max(1) as u64).max(self.least_ns)
    }

    fn ran(&mut self, task: usize, ran_ns: Nanoseconds) {
        let length = self.virtual_length(task, ran_ns);
        let state = &mut self.tasks[task];
        state.virtual_ns = state.virtual_ns.saturating_add(length);
    }

    fn expired(&mut self, _task: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_run_by_their_weights() {
        let mut scheduler = Fair::new(Nanoseconds::new(6_000), Nanoseconds::new(1_000));
        scheduler.add(0);
        scheduler.add(-1);
        let mut ran = [0; 2];
        for _ in 0..900 {
            let chosen = scheduler.choose(&[true; 2]).expect("two are ready");
            scheduler.ran(chosen, Nanoseconds::new(4_000));
            ran[chosen] += 1;
        }
        assert_eq!(ran, [400, 500], "weights of 1024 and 1280");
    }

    #[test]
    fn a_step_of_niceness_is_a_quarter() {
        assert_eq!([weight(-1), weight(0), weight(1)], [1280, 1024, 819]);
        assert!(weight(19) > 0 && weight(-20) > 80_000);
    }

    #[test]
    fn a_long_sleep_earns_no_more_than_half_a_latency() {
        let mut scheduler = Fair::new(Nanoseconds::new(6_000), Nanoseconds::new(1_000));
        scheduler.add(0);
        scheduler.add(0);
        scheduler.ran(0, Nanoseconds::new(1_000_000));
        assert_eq!(scheduler.choose(&[true, false]), Some(0));
        assert!(
            scheduler.woke(1, Nanoseconds::new(1_000_000), Some(0)),
            "it is behind by more than a granularity"
        );
        assert_eq!(scheduler.choose(&[true; 2]), Some(1));
        scheduler.ran(1, Nanoseconds::new(3_001));
        assert_eq!(scheduler.choose(&[true; 2]), Some(0));
    }
}
