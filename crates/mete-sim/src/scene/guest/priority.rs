//! Priorities with a bonus for tasks that sleep much: a task that woke for an event preempts one that
//! computes (TAVS paper, §3.3: the first criterion).
//!
//! This follows Linux 2.6's O(1) scheduler. A task has a static priority, 100 (best) to 139. The longer it
//! has slept of late, with at most a second counted, the better its dynamic priority is, by up to five. The
//! more it has run, the worse its dynamic priority is, by up to five. Sleep counts more the worse the
//! priority is, and running counts less the better it is, so that a task soon reaches the priority that suits
//! it. A task that has used up its slice waits until all others have used up theirs, unless it sleeps so much
//! that it is interactive.

use mete_policy::Nanoseconds;

use super::scheduler::Scheduler;

/// At most this much sleep counts.
const MOST_SLEEP_NS: Nanoseconds = Nanoseconds::new(1_000_000_000);
/// Steps of the bonus, from the worst to the best.
const STEPS: u64 = 10;
/// From this bonus on a task counts as interactive.
const INTERACTIVE_BONUS: i32 = 2;
/// The priority of a task of niceness 0.
const NEUTRAL: i32 = 120;

#[derive(Clone, Copy, Debug)]
struct PriorityTask {
    static_priority: i32,
    sleep_ns: Nanoseconds,
    /// It has used up its slice and waits until the others have used up theirs.
    is_expired: bool,
    /// Its place among the tasks of its priority.
    place: u64,
}

impl PriorityTask {
    /// 0 for a task that never sleeps, up to [`STEPS`].
    fn step(&self) -> u64 {
        self.sleep_ns.min(MOST_SLEEP_NS) * STEPS / MOST_SLEEP_NS
    }

    /// −5 to 5.
    fn bonus(&self) -> i32 {
        self.step() as i32 - STEPS as i32 / 2
    }

    fn priority(&self) -> i32 {
        (self.static_priority - self.bonus()).clamp(100, 139)
    }
}

/// Priorities with a bonus for tasks that sleep much, as in Linux 2.6's O(1) scheduler.
#[derive(Clone, Debug)]
pub struct Priority {
    slice_ns: Nanoseconds,
    tasks: Vec<PriorityTask>,
    next_place: u64,
}

impl Priority {
    /// A scheduler whose tasks run for at most this long at a time.
    pub fn new(slice_ns: Nanoseconds) -> Priority {
        Priority { slice_ns, tasks: Vec::new(), next_place: 0 }
    }

    fn take_place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place
    }

    /// Takes a task over with its bonus, behind the other tasks of its priority.
    pub(super) fn take_over(&mut self, task: usize, from: &Priority) {
        let place = self.take_place();
        self.tasks[task] = PriorityTask { place, ..from.tasks[task] };
    }

    fn best(&self, is_candidate: impl Fn(usize, &PriorityTask) -> bool) -> Option<usize> {
        let candidates = self.tasks.iter().enumerate();
        let candidates = candidates.filter(|(task, state)| is_candidate(*task, state));
        candidates.min_by_key(|(_, state)| (state.priority(), state.place)).map(|(task, _)| task)
    }
}

impl Scheduler for Priority {
    fn add(&mut self, nice: i32) {
        let place = self.take_place();
        self.tasks.push(PriorityTask {
            static_priority: NEUTRAL + nice,
            sleep_ns: Nanoseconds::ZERO,
            is_expired: false,
            place,
        });
    }

    fn woke(&mut self, task: usize, slept_ns: Nanoseconds, current: Option<usize>) -> bool {
        let place = self.take_place();
        let state = &mut self.tasks[task];
        // At least 1, so that sleep counts even with the full bonus.
        let counts_ns = slept_ns.saturating_mul((STEPS - state.step()).max(1));
        state.sleep_ns = state.sleep_ns.saturating_add(counts_ns).min(MOST_SLEEP_NS);
        state.place = place;
        let (priority, is_expired) = (state.priority(), state.is_expired);
        !is_expired && current.is_some_and(|current| priority < self.tasks[current].priority())
    }

    fn choose(&mut self, ready: &[bool]) -> Option<usize> {
        self.best(|task, state| ready[task] && !state.is_expired).or_else(|| {
            // All tasks that are ready have used up their slices: a new round begins.
            self.tasks.iter_mut().for_each(|state| state.is_expired = false);
            self.best(|task, _| ready[task])
        })
    }

    fn spare(&self, ready: &[bool], current: Option<usize>) -> Option<usize> {
        let is_spare = |task| ready[task] && current != Some(task);
        // In the same order as `choose`, but without beginning a new round.
        let first = self.best(|task, state| is_spare(task) && !state.is_expired);
        first.or_else(|| self.best(|task, _| is_spare(task)))
    }

    fn slice_ns(&self, _task: usize, _ready: usize) -> Nanoseconds {
        self.slice_ns
    }

    fn ran(&mut self, task: usize, ran_ns: Nanoseconds) {
        let state = &mut self.tasks[task];
        // The larger the bonus is, the more slowly running uses it up.
        state.sleep_ns = state.sleep_ns.saturating_sub(ran_ns / state.step().max(1));
    }

    fn expired(&mut self, task: usize) {
        let place = self.take_place();
        let state = &mut self.tasks[task];
        state.place = place;
        // A task that sleeps much stays among those that have not used up their slices.
        state.is_expired = state.bonus() < INTERACTIVE_BONUS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Priority {
        let mut scheduler = Priority::new(Nanoseconds::new(100));
        scheduler.add(0);
        scheduler.add(0);
        scheduler
    }

    #[test]
    fn a_task_that_slept_preempts_one_that_computes() {
        let mut scheduler = two();
        scheduler.ran(0, MOST_SLEEP_NS);
        assert!(scheduler.woke(1, MOST_SLEEP_NS, Some(0)));
        assert_eq!(scheduler.choose(&[true, true]), Some(1));
    }

    #[test]
    fn a_task_that_only_just_slept_waits_its_turn() {
        let mut scheduler = two();
        assert!(!scheduler.woke(1, Nanoseconds::new(1_000), Some(0)));
    }

    #[test]
    fn tasks_of_one_priority_take_turns_and_worse_ones_are_not_starved() {
        let mut scheduler = two();
        scheduler.add(10);
        let ready = [true; 3];
        let mut turns = Vec::new();
        for _ in 0..6 {
            let chosen = scheduler.choose(&ready).expect("three are ready");
            turns.push(chosen);
            scheduler.ran(chosen, Nanoseconds::new(100));
            scheduler.expired(chosen);
        }
        assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
    }
}
