//! The kernel component as a source (LOG-13).

use std::io;
use std::path::Path;
use std::time::Duration;

use mete_kernel::{Bound, Characteristic, Division, Kernel, KernelError, Principal, ProcessKind, Rule};
use mete_log::{Area, DomainId, Shape};

use super::{EventUse, Meaning, Source, SourceError};
use crate::domains::{Change, IDLE};
use crate::missed_activity::MissedActivity;

/// The label of the running kernel among the sources. It cannot be confused with a program's label, which has
/// the number of the program's process behind its name.
pub const KERNEL: &str = "kernel";
/// The name of the kernel's log file of [service time](Characteristic::ServiceTime).
pub const SERVICE_TIME: &str = "service time";
/// The name of the kernel's log file of [wake-ups](Characteristic::Ipc).
pub const IPC: &str = "ipc";

/// The running kernel, which logs what was asked for. When this is dropped, the kernel is as it was before.
pub struct KernelSource {
    kernel: Kernel,
    events: Vec<EventUse>,
    /// What is logged, in the order in which it was enabled. This order numbers the counters.
    logged: Vec<Characteristic>,
}

/// The tick that charges the running task. It is used if the length of run queues is not asked for. Without
/// it, a task that does not leave its processor would have no time, or would be charged at its end for time
/// from before the logging began.
const CHARGE: Characteristic = Characteristic::RunQueue { hertz: CHARGES_A_SECOND };
const CHARGES_A_SECOND: u32 = 100;

/// The time within which the tick charges each running task, where the kernel logs these characteristics.
pub(crate) fn charged_within(logged: &[Characteristic]) -> Duration {
    let asked = logged.iter().filter_map(|what| match what {
        Characteristic::RunQueue { hertz } => Some(*hertz),
        _ => None,
    });
    Duration::from_secs(1) / asked.min().unwrap_or(CHARGES_A_SECOND).max(1)
}

/// A characteristic that this machine does not log, and why.
#[derive(Debug, thiserror::Error)]
#[error("{what} is not logged: {source}")]
pub struct Unavailable {
    /// The characteristic.
    pub what: String,
    /// Why.
    pub source: KernelError,
}

impl KernelSource {
    /// Has the loaded kernel component log these characteristics. What this machine cannot log is left out,
    /// and returned with the reason.
    ///
    /// # Errors
    ///
    /// [`KernelError`] if idle time cannot be told apart. Nothing is logged then.
    pub fn start(
        mut kernel: Kernel,
        wanted: &[Characteristic],
    ) -> Result<(KernelSource, Vec<Unavailable>), KernelError> {
        // Before anything is logged, so that no idle time counts for "other".
        kernel.bind(&Principal::Idle, IDLE)?;
        let (mut events, mut logged, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for what in wanted {
            let (name, meaning) = described(what);
            match kernel.enable(what) {
                Ok(event) => {
                    events.push(EventUse::new(event, name, meaning));
                    logged.push(what.clone());
                }
                Err(source) => missing.push(Unavailable { what: name.into(), source }),
            }
        }
        if logged.contains(&Characteristic::ServiceTime)
            && !logged.iter().any(|what| matches!(what, Characteristic::RunQueue { .. }))
        {
            match kernel.enable(&CHARGE) {
                // `logged` and not `events`: it is switched with the others, and the analysis gets no rows of
                // it.
                Ok(_) => logged.push(CHARGE),
                Err(source) => missing.push(Unavailable {
                    what: "service time of tasks that do not leave a processor".into(),
                    source,
                }),
            }
        }
        if wanted.contains(&Characteristic::Ipc)
            && let Err(source) = kernel.follows_packets()
        {
            missing.push(Unavailable { what: "ipc by packets".into(), source });
        }
        Ok((KernelSource { kernel, events, logged }, missing))
    }

    /// The kernel component.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }
}

/// The name of a characteristic, and what its rows mean.
fn described(what: &Characteristic) -> (&str, Meaning) {
    match what {
        Characteristic::ServiceTime => (SERVICE_TIME, Meaning::ServiceTime),
        // One row for both sides: a row of the receiver's side would say the same once more.
        Characteristic::Ipc => (IPC, Meaning::Woke),
        Characteristic::Memory => ("memory", Meaning::Memory),
        Characteristic::RunQueue { .. } => ("run queue", Meaning::RunQueue),
        Characteristic::Counter(counter) => (counter.name(), Meaning::Counter),
    }
}

impl Source for KernelSource {
    fn label(&self) -> &str {
        KERNEL
    }

    fn shape(&self) -> Shape {
        Shape::KERNEL
    }

    fn processors(&self) -> usize {
        self.kernel.processors()
    }

    fn area(&self, processor: usize) -> Area<'_> {
        self.kernel.area(processor)
    }

    fn events(&self) -> &[EventUse] {
        &self.events
    }

    fn bind(&mut self, change: Change) -> Result<(), SourceError> {
        // An ended task needs nothing: the kernel overwrites its entry when its number is given out again.
        // The kernel follows control groups by itself, and a task's own binding would keep it from doing so.
        if !change.is_alive || change.is_by_cgroup {
            return Ok(());
        }
        unless_ended(self.kernel.bind(&Principal::Process(change.pid as i32), change.to))
    }

    fn rebind(&mut self, change: Change, seen: Option<Bound>) -> Result<(), SourceError> {
        match seen {
            Some(seen) if change.is_alive && !change.is_by_cgroup => {
                unless_ended(self.kernel.rebind(change.pid as i32, seen, change.to))
            }
            _ => self.bind(change),
        }
    }

    fn bind_cgroup(&mut self, path: &Path, domain: DomainId) -> Result<(), SourceError> {
        match self.kernel.bind(&Principal::Cgroup(path.into()), domain) {
            // The control group was there when its name was read, and was removed since.
            Err(KernelError::Cgroup { source, .. }) if is_removed(&source) => Ok(()),
            other => Ok(other?),
        }
    }

    fn take_stock(&mut self) -> Result<(), SourceError> {
        Ok(self.kernel.take_stock()?)
    }

    /// Detaches every program that logs. The programs that follow forks, execs and control groups stay
    /// attached.
    fn pause(&mut self) -> Result<(), SourceError> {
        Ok(self.logged.iter().try_for_each(|what| self.kernel.disable(what))?)
    }

    fn resume(&mut self) -> Result<(), SourceError> {
        // In the same order as at first, which gives the counters the same numbers.
        self.logged.iter().try_for_each(|what| self.kernel.enable(what).map(drop))?;
        // Memory may have changed during the pause without a row.
        self.take_stock()
    }

    fn run_queue_offset_ns(&self) -> Option<i64> {
        Some(self.kernel.run_queue_offset_ns())
    }

    fn select(&mut self, rules: &[Rule], division: Option<&Division>) -> Result<bool, SourceError> {
        self.kernel.select(rules, division)?;
        Ok(true)
    }

    fn kinds(&self) -> Vec<(ProcessKind, DomainId)> {
        self.kernel.kinds().unwrap_or_default()
    }

    fn bound(&self, pid: u32) -> Option<Bound> {
        Some(self.kernel.bound(pid as i32))
    }

    fn missed(&self) -> Option<MissedActivity> {
        let kernel = &self.kernel;
        Some(MissedActivity {
            runs: kernel.missed_runs().ok()?,
            spaces: kernel.missed_spaces().ok()?,
            switches: kernel.missed_switches().ok()?,
            // The scheduler knows what is late; see `report`.
            ..MissedActivity::default()
        })
    }
}

/// The result, where a task that has ended is no error.
fn unless_ended(bound: Result<(), KernelError>) -> Result<(), SourceError> {
    match bound {
        Err(KernelError::Task { source, .. }) if has_ended(&source) => Ok(()),
        other => Ok(other?),
    }
}

fn is_removed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        // ENODEV: the directory is still there, but the group is being removed.
        || error.raw_os_error() == Some(libc::ENODEV)
}

fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_13_a_task_is_charged_within_the_period_of_the_tick_that_is_in_force() {
        let run_queue = |hertz| Characteristic::RunQueue { hertz };
        for (logged, milliseconds) in [
            (&[Characteristic::ServiceTime][..], 10),
            (&[Characteristic::ServiceTime, run_queue(1)], 1000),
            (&[run_queue(250), Characteristic::ServiceTime], 4),
        ] {
            assert_eq!(charged_within(logged), Duration::from_millis(milliseconds), "{logged:?}");
        }
    }
}
