//! What a guest's kernel is asked, whichever scheduler it has.

use mete_policy::Nanoseconds;

use super::fair::Fair;
use super::priority::Priority;

/// A guest's own scheduler: the run queue of one virtual processor.
pub(super) trait Scheduler {
    /// Makes a task known, with its niceness: −20 (best) to 19.
    fn add(&mut self, nice: i32);
    /// A task became ready; whether it should take the processor from `current`.
    fn woke(&mut self, task: usize, slept_ns: Nanoseconds, current: Option<usize>) -> bool;
    /// Who runs next.
    fn choose(&mut self, ready: &[bool]) -> Option<usize>;
    /// Who would run next, apart from `current`: whom another virtual processor may have.
    fn spare(&self, ready: &[bool], current: Option<usize>) -> Option<usize>;
    /// How long the task that was chosen may run.
    fn slice_ns(&self, task: usize, ready: usize) -> Nanoseconds;
    /// A task has run for so long.
    fn ran(&mut self, task: usize, ran_ns: Nanoseconds);
    /// A task's slice is used up.
    fn expired(&mut self, task: usize);
}

/// Which scheduler a guest has.
#[derive(Clone)]
pub enum Kernel {
    /// Priorities with a bonus for who sleeps much.
    Priority(Priority),
    /// Least virtual run time first.
    Fair(Fair),
}

impl Kernel {
    pub(super) fn scheduler(&mut self) -> &mut dyn Scheduler {
        match self {
            Kernel::Priority(scheduler) => scheduler,
            Kernel::Fair(scheduler) => scheduler,
        }
    }

    pub(super) fn spare(&self, ready: &[bool], current: Option<usize>) -> Option<usize> {
        match self {
            Kernel::Priority(scheduler) => scheduler.spare(ready, current),
            Kernel::Fair(scheduler) => scheduler.spare(ready, current),
        }
    }

    /// Takes a task over from another virtual processor's run queue. All of a guest's are of one kind.
    pub(super) fn take_over(&mut self, task: usize, from: &Kernel) {
        match (self, from) {
            (Kernel::Priority(to), Kernel::Priority(from)) => to.take_over(task, from),
            (Kernel::Fair(to), Kernel::Fair(from)) => to.take_over(task, from),
            (Kernel::Priority(_), Kernel::Fair(_)) | (Kernel::Fair(_), Kernel::Priority(_)) => {}
        }
    }
}

/// What a guest kernel's own work costs, in processor time of its virtual processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCosts {
    /// Switching to another task.
    pub switch_ns: Nanoseconds,
    /// Taking one event.
    pub interrupt_ns: Nanoseconds,
    /// What the host takes for each thing that it sees of the guest's tasks: a switch to another, an event
    /// that comes for one. The guest waits for it.
    pub track_ns: Nanoseconds,
}
