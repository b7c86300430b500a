//! The kernel component as a source (LOG-13).

use std::io;
use std::path::Path;

use mete_kernel::{Bound, Characteristic, Division, Kernel, KernelError, Principal, ProcessKind, Rule};
use mete_log::{Area, DomainId, Shape};

use super::{EventUse, Meaning, Source, SourceError};
use crate::analysis::Missed;
use crate::domains::{Change, IDLE};

/// What the running kernel is called among the sources. A program's label has the number of its process behind its name.
pub const KERNEL: &str = "kernel";

/// The running kernel, logging what was asked for. Dropped, it is as it was.
pub struct KernelSource {
    kernel: Kernel,
    events: Vec<EventUse>,
    /// What is logged, in the order in which it was enabled, which numbers the counters.
    logged: Vec<Characteristic>,
}

/// The tick that charges the running task, where the length of run queues is not asked for. Else a task that does not leave its
/// processor would have no time, or at the end some from before the logging.
const CHARGE: Characteristic = Characteristic::RunQueue { hertz: 100 };

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
    /// Has the loaded kernel component log these characteristics. What this machine cannot log is
    /// left out and said.
    ///
    /// # Errors
    ///
    /// [`KernelError`] if idle time cannot be told apart; nothing is logged then.
    pub fn start(
        mut kernel: Kernel,
        wanted: &[Characteristic],
    ) -> Result<(KernelSource, Vec<Unavailable>), KernelError> {
        kernel.bind(&Principal::Idle, IDLE)?;
        let (mut events, mut logged, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for what in wanted {
            match kernel.enable(what) {
                Ok(first) => {
                    events.extend(uses(what, first));
                    logged.push(what.clone());
                }
                Err(source) => missing.push(Unavailable { what: name(what), source }),
            }
        }
        if logged.contains(&Characteristic::ServiceTime)
            && !logged.iter().any(|what| matches!(what, Characteristic::RunQueue { .. }))
        {
            match kernel.enable(&CHARGE) {
                Ok(_) => logged.push(CHARGE),
                Err(source) => missing.push(Unavailable {
                    what: "service time of who does not leave a processor".into(),
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

fn name(what: &Characteristic) -> String {
    match what {
        Characteristic::ServiceTime => "service time".into(),
        Characteristic::Ipc => "ipc".into(),
        Characteristic::Memory => "memory".into(),
        Characteristic::RunQueue { .. } => "run queue".into(),
        Characteristic::Counter(counter) => counter.name().into(),
    }
}

fn uses(what: &Characteristic, first: mete_log::EventId) -> Vec<EventUse> {
    let of = |meaning| vec![EventUse::new(first, name(what), meaning)];
    match what {
        Characteristic::ServiceTime => of(Meaning::ServiceTime),
        Characteristic::Memory => of(Meaning::Memory),
        Characteristic::RunQueue { .. } => of(Meaning::RunQueue),
        Characteristic::Counter(_) => of(Meaning::Counter),
        // The row of the receiver's side would say the same once more.
        Characteristic::Ipc => of(Meaning::Woke),
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
        // The kernel overwrites the entry of a task that ended when its number is given out again.
        // Control groups it follows itself, and a task's own binding would keep it from doing so.
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
            // It was there when its name was read.
            Err(KernelError::Cgroup { source, .. }) if is_removed(&source) => Ok(()),
            other => Ok(other?),
        }
    }

    fn take_stock(&mut self) -> Result<(), SourceError> {
        Ok(self.kernel.take_stock()?)
    }

    /// Detaches every program that logs. Those that follow forks, execs and control groups stay.
    fn pause(&mut self) -> Result<(), SourceError> {
        Ok(self.logged.iter().try_for_each(|what| self.kernel.disable(what))?)
    }

    fn resume(&mut self) -> Result<(), SourceError> {
        self.logged.iter().try_for_each(|what| self.kernel.enable(what).map(drop))?;
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

    fn missed(&self) -> Option<Missed> {
        let kernel = &self.kernel;
        Some(Missed {
            runs: kernel.runs_missed().ok()?,
            spaces: kernel.spaces_missed().ok()?,
            switches: kernel.switches_missed().ok()?,
            ..Missed::default()
        })
    }
}

fn unless_ended(bound: Result<(), KernelError>) -> Result<(), SourceError> {
    match bound {
        Err(KernelError::Task { source, .. }) if has_ended(&source) => Ok(()),
        other => Ok(other?),
    }
}

fn is_removed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV)
}

fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}
