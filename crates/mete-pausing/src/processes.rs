//! How the manager looks at processes and acts on them.

use mete_policy::Nanoseconds;
use mete_sched::actuator::pauses::Pausable;
use mete_sched::actuator::{ActuatorError, Pauses};
use mete_sched::domains::process;

use crate::clock;

/// What the manager does to processes. Its tests have a model of a machine instead.
pub(crate) trait Processes {
    /// A process that may be paused.
    type Process;

    /// What it has used; `None` if it has ended.
    fn used(&mut self, process: &Self::Process) -> Option<Nanoseconds>;

    /// Whether any of its threads runs or waits for a processor.
    fn can_run(&mut self, process: &Self::Process) -> bool;

    /// Whether it is there, and no other one has its number.
    fn is_there(&mut self, process: &Self::Process) -> bool;

    /// Has it wait, also if it waits already. `false` if it cannot be paused any more.
    ///
    /// # Errors
    ///
    /// It could not be had to go on later.
    fn pause(&mut self, process: &Self::Process) -> Result<bool, ActuatorError>;

    /// Has it go on.
    fn resume(&mut self, process: &Self::Process);

    /// All that is to go on for now does.
    ///
    /// # Errors
    ///
    /// That cannot be noted.
    fn settle(&mut self) -> Result<(), ActuatorError>;
}

impl Processes for Pauses {
    type Process = Pausable;

    fn used(&mut self, process: &Pausable) -> Option<Nanoseconds> {
        clock::used_by(process.pid())
    }

    fn can_run(&mut self, process: &Pausable) -> bool {
        process.is_runnable() || {
            let threads = process::threads(process.pid());
            threads.len() > 1 && threads.into_iter().any(process::is_runnable)
        }
    }

    fn is_there(&mut self, process: &Pausable) -> bool {
        process.is_there()
    }

    fn pause(&mut self, process: &Pausable) -> Result<bool, ActuatorError> {
        Pauses::pause(self, process)
    }

    fn resume(&mut self, process: &Pausable) {
        Pauses::resume(self, process);
    }

    fn settle(&mut self) -> Result<(), ActuatorError> {
        Pauses::settle(self)
    }
}
