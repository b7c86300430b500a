//! The kernel of a guest: which scheduler it has, and what its own work costs.

use mete_policy::Nanoseconds;

use super::fair::Fair;
use super::priority::Priority;
use super::scheduler::Scheduler;

/// Which scheduler a guest has.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// Priorities with a bonus for tasks that sleep much.
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

    /// Takes a task over from another virtual processor's run queue.
    pub(super) fn take_over(&mut self, task: usize, from: &Kernel) {
        match (self, from) {
            (Kernel::Priority(to), Kernel::Priority(from)) => to.take_over(task, from),
            (Kernel::Fair(to), Kernel::Fair(from)) => to.take_over(task, from),
            // All run queues of a guest are of one kind: they are copies of one kernel.
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
    /// What the host takes for each thing that it sees of the guest's tasks: a switch to another task, or an
    /// event that comes for a task. The guest waits for it.
    pub track_ns: Nanoseconds,
}
