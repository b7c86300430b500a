//! What the kernel of a guest asks its scheduler.

use mete_policy::Nanoseconds;

/// A guest's own scheduler: the run queue of one virtual processor.
pub(super) trait Scheduler {
    /// Adds a task with its niceness: −20 (best) to 19.
    fn add(&mut self, nice: i32);
    /// A task became ready. The result says whether it should take the processor from `current`.
    fn woke(&mut self, task: usize, slept_ns: Nanoseconds, current: Option<usize>) -> bool;
    /// The task that runs next.
    fn choose(&mut self, ready: &[bool]) -> Option<usize>;
    /// The task other than `current` that would run next: another virtual processor may take it over.
    fn spare(&self, ready: &[bool], current: Option<usize>) -> Option<usize>;
    /// How long the chosen task may run when `ready` tasks are ready.
    fn slice_ns(&self, task: usize, ready: usize) -> Nanoseconds;
    /// A task has run for this time.
    fn ran(&mut self, task: usize, ran_ns: Nanoseconds);
    /// A task's slice is used up.
    fn expired(&mut self, task: usize);
}
