//! Where logs come from: the kernel component, user-level components, or a region that another part of the
//! program fills. The analysis reads all of them through one trait, [`Source`].

pub mod components;
pub mod discovery;
pub mod kernel;
pub mod region;
pub mod standing;

use std::path::Path;

use mete_kernel::{Bound, Division, KernelError, ProcessKind, Rule};
use mete_log::bindings::BindingsFull;
use mete_log::{Area, DomainId, EventId, PlanError, RegionError, Shape};
use mete_probe::attach::AttachError;

pub use components::ComponentSource;
pub use discovery::Discovery;
pub use kernel::{IPC, KERNEL, KernelSource, SERVICE_TIME, Unavailable};
pub use region::RegionSource;
pub use standing::{Claims, Trust};

use crate::domains::Change;
use crate::missed_activity::MissedActivity;

/// What an event's rows say. It decides what the analysis makes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The domain ran for this number of nanoseconds. The correspondent runs now.
    ServiceTime,
    /// The domain woke the correspondent.
    Sent,
    /// The domain was woken by the correspondent.
    Received,
    /// The domain woke the correspondent, in one row for both sides.
    Woke,
    /// This number of bytes is resident for the domain now.
    Memory,
    /// This number of tasks is runnable on the row's processor.
    RunQueue,
    /// A performance counter moved by this number while the domain ran.
    Counter,
    /// The domain used something this number of times: a transaction, for the correspondent if there is one.
    Access,
    /// The domain was in a phase of use, for the correspondent if there is one.
    Phase,
    /// A value that the domain's process has chosen to log.
    Sample,
}

/// One event that a source logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventUse {
    /// Its number in rows.
    pub event: EventId,
    /// What people call it.
    pub name: String,
    /// What its rows say.
    pub meaning: Meaning,
    /// How many occurrences make one row; 1 for a row of each occurrence.
    pub threshold: u32,
}

impl EventUse {
    /// An event of which every occurrence is logged.
    pub fn new(event: EventId, name: impl Into<String>, meaning: Meaning) -> EventUse {
        EventUse { event, name: name.into(), meaning, threshold: 1 }
    }
}

/// One component whose logs are read. It logs already, or logs as soon as it is told to
/// [begin](Source::begin).
pub trait Source: Send {
    /// What people call it: `kernel`, or a program and its process.
    fn label(&self) -> &str;

    /// The shape of its areas.
    fn shape(&self) -> Shape;

    /// The number of its areas: one for each processor.
    fn processors(&self) -> usize;

    /// One of its areas.
    fn area(&self, processor: usize) -> Area<'_>;

    /// The events that it logs.
    fn events(&self) -> &[EventUse];

    /// Tells it that a process belongs to another domain now.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the component cannot be told. A process that has ended is no error.
    fn bind(&mut self, change: Change) -> Result<(), SourceError>;

    /// Like [`Source::bind`], but changes nothing if the component has bound the process by itself since
    /// [`Source::bound`] returned `_seen`.
    ///
    /// # Errors
    ///
    /// As [`Source::bind`].
    fn rebind(&mut self, change: Change, _seen: Option<Bound>) -> Result<(), SourceError> {
        self.bind(change)
    }

    /// Binds a control group, if the component knows control groups.
    ///
    /// # Errors
    ///
    /// As [`Source::bind`]. A control group that has been removed is no error.
    fn bind_cgroup(&mut self, _path: &Path, _domain: DomainId) -> Result<(), SourceError> {
        Ok(())
    }

    /// Begins to log. Called once the source's logs have been laid out and it has been told which processes
    /// belong where, so that its first rows are in their domains. Does not wait.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if it takes no requests.
    fn begin(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Logs what exists already, for events that otherwise log only changes. Called when the logs have been
    /// laid out, and again when processes have been bound.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if that cannot be found out.
    fn take_stock(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Stops logging until the source is [told to go on](Source::resume). Meanwhile it still follows
    /// processes to their domains. Does nothing if another part of the program decides when the source logs.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if it cannot be told.
    fn pause(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Logs again what the source logged before it was [told to pause](Source::pause).
    ///
    /// # Errors
    ///
    /// [`SourceError`] if it cannot go on.
    fn resume(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// How far the monotonic clock is ahead of the run queues' clock, in nanoseconds. `None` if the source
    /// has no [`Stamp::RunQueue`](mete_log::Stamp::RunQueue). Where it is there, that stamp is cheaper than
    /// others.
    fn run_queue_offset_ns(&self) -> Option<i64> {
        None
    }

    /// The domains that its rows must name in order to count; `None` for all domains.
    fn claims(&self) -> Option<&Claims> {
        None
    }

    /// Takes the component's answers to what it was told. Does not wait.
    ///
    /// # Errors
    ///
    /// [`SourceError`] for what the component refused or does not accept. [`Source::is_alive`] says whether
    /// it can still be read.
    fn attend(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Has the component bind processes by itself as soon as these rules select them. Returns whether the
    /// component can do that. If it can, it also gives out the domains of the division.
    ///
    /// # Errors
    ///
    /// As [`Source::bind`].
    fn select(&mut self, _rules: &[Rule], _division: Option<&Division>) -> Result<bool, SourceError> {
        Ok(false)
    }

    /// The kinds of processes to which it has given out domains, with these domains.
    fn kinds(&self) -> Vec<(ProcessKind, DomainId)> {
        Vec::new()
    }

    /// How the component itself has bound a process; `None` if it binds none.
    fn bound(&self, _pid: u32) -> Option<Bound> {
        None
    }

    /// What it knows to have missed so far; `None` if that cannot be found out.
    fn missed(&self) -> Option<MissedActivity> {
        Some(MissedActivity::default())
    }

    /// Where the component was found, if the scheduler looked for it. This tells components apart: a process
    /// may have several of one name.
    fn found_at(&self) -> Option<&Path> {
        None
    }

    /// Whether the component still runs. What it has logged can be read in any case.
    fn is_alive(&self) -> bool {
        true
    }
}

/// Why a source cannot be used as asked.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The kernel component gives the reason.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The connection to a component gives the reason.
    #[error(transparent)]
    Component(#[from] AttachError),
    /// The component has another user's rights than when it was taken.
    #[error("component {0} has another user now, so it is taken anew")]
    Changed(String),
    /// There is no memory for the component's logs.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The source's log area has no room for the log files.
    #[error("the log files of {label} cannot be laid out: {source}")]
    Plan {
        /// The source.
        label: String,
        /// Why.
        source: PlanError,
    },
    /// The source's table of processes is full.
    #[error("{label}: {source}")]
    Bindings {
        /// The source.
        label: String,
        /// Why.
        source: BindingsFull,
    },
}
