//! The kernel component as a source (LOG-13).

use std::io;
use std::path::Path;

use mete_kernel::{Characteristic, Kernel, KernelError, Principal, event};
use mete_log::{Area, DomainId, Shape};

use super::{EventUse, Meaning, Source, SourceError};
use crate::analysis::Missed;
use crate::domains::{Change, IDLE};

/// The running kernel, logging what was asked for. Dropped, it is as it was.
pub struct KernelSource {
    kernel: Kernel,
    events: Vec<EventUse>,
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
        let (mut events, mut missing) = (Vec::new(), Vec::new());
        for what in wanted {
            match kernel.enable(what) {
                Ok(first) => events.extend(uses(what, first)),
                Err(source) => missing.push(Unavailable { what: name(what), source }),
            }
        }
        Ok((KernelSource { kernel, events }, missing))
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
        Characteristic::Ipc => vec![
            EventUse::new(event::IPC_SEND, "ipc sent", Meaning::Sent),
            EventUse::new(event::IPC_RECEIVE, "ipc received", Meaning::Received),
        ],
    }
}

impl Source for KernelSource {
    fn label(&self) -> &str {
        "kernel"
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
        match self.kernel.bind(&Principal::Process(change.pid as i32), change.to) {
            Err(KernelError::Task { source, .. }) if has_ended(&source) => Ok(()),
            other => Ok(other?),
        }
    }

    fn bind_cgroup(&mut self, path: &Path, domain: DomainId) -> Result<(), SourceError> {
        Ok(self.kernel.bind(&Principal::Cgroup(path.into()), domain)?)
    }

    fn missed(&self) -> Option<Missed> {
        let kernel = &self.kernel;
        Some(Missed {
            runs: kernel.runs_missed().ok()?,
            spaces: kernel.spaces_missed().ok()?,
            switches: kernel.switches_missed().ok()?,
        })
    }
}

fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}
