//! Where logs come from: the kernel component, user-level components, or a region that somebody
//! else fills. The analysis sees them through one trait and does not care.

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
pub use kernel::{KERNEL, KernelSource, Unavailable};
pub use region::RegionSource;
pub use standing::{Claims, Trust};

use crate::analysis::Missed;
use crate::domains::Change;

/// What an event's rows say, and so what the analysis makes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The domain ran for so many nanoseconds; the correspondent runs now.
    ServiceTime,
    /// The domain woke the correspondent.
    Sent,
    /// The domain was woken by the correspondent.
    Received,
    /// The domain woke the correspondent, in one row for both sides.
    Woke,
    /// So many bytes are resident for the domain now.
    Memory,
    /// So many tasks are runnable on the row's processor.
    RunQueue,
    /// A performance counter moved by so much while the domain ran.
    Counter,
    /// The domain used something so often, for the correspondent if there is one: a transaction.
    Access,
    /// The domain was in a phase of use, for the correspondent if there is one.
    Phase,
    /// A value of the domain's own.
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
    /// How many occurrences make one row; 1 for each.
    pub threshold: u32,
}

impl EventUse {
    /// An event of which every occurrence is logged.
    pub fn new(event: EventId, name: impl Into<String>, meaning: Meaning) -> EventUse {
        EventUse { event, name: name.into(), meaning, threshold: 1 }
    }

    /// The same event, one row for so many occurrences (LOG-8).
    pub fn with_threshold(mut self, threshold: u32) -> EventUse {
        self.threshold = threshold.max(1);
        self
    }
}

/// One component whose logs are read. It logs already, or as soon as it is told to [begin](Source::begin).
pub trait Source: Send {
    /// What people call it: `kernel`, or a program and its process.
    fn label(&self) -> &str;

    /// The shape of its areas.
    fn shape(&self) -> Shape;

    /// How many areas it has, one for each processor.
    fn processors(&self) -> usize;

    /// One of its areas.
    fn area(&self, processor: usize) -> Area<'_>;

    /// What it logs.
    fn events(&self) -> &[EventUse];

    /// Tells it that a process belongs to another domain now.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the component cannot be told. A process that has ended is no error.
    fn bind(&mut self, change: Change) -> Result<(), SourceError>;

    /// The same, unless it has bound the process by itself since it was [`bound`](Source::bound) so.
    ///
    /// # Errors
    ///
    /// As [`Source::bind`].
    fn rebind(&mut self, change: Change, _seen: Option<Bound>) -> Result<(), SourceError> {
        self.bind(change)
    }

    /// Binds the kernel's own principals, where the component knows them.
    ///
    /// # Errors
    ///
    /// As [`Source::bind`]; one that has been removed is none.
    fn bind_cgroup(&mut self, _path: &Path, _domain: DomainId) -> Result<(), SourceError> {
        Ok(())
    }

    /// Begins to log. Called once its logs have been laid out and it has been told who belongs where, so that its first
    /// rows are in their domains. Does not wait.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if it takes no requests.
    fn begin(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Logs what there is already, for what else would log only how it changes. Called when its logs have
    /// been laid out, and again when processes have been bound.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if that cannot be found out.
    fn take_stock(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Has it log nothing, until it is [told to go on](Source::resume). Where processes belong it follows meanwhile.
    /// Does nothing where somebody else has the source log.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if it cannot be told.
    fn pause(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Has it log again what it logged before it was [told to pause](Source::pause).
    ///
    /// # Errors
    ///
    /// [`SourceError`] if it cannot.
    fn resume(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// How far the monotonic clock is ahead of the run queues', in nanoseconds; `None` if it has no
    /// [`Stamp::RunQueue`](mete_log::Stamp::RunQueue), which is cheaper than other stamps where it is there.
    fn run_queue_offset_ns(&self) -> Option<i64> {
        None
    }

    /// What its rows may name to count; `None` for everything.
    fn claims(&self) -> Option<&Claims> {
        None
    }

    /// Takes its answers to what it was told. Does not wait.
    ///
    /// # Errors
    ///
    /// [`SourceError`] for what it refused or does not take. [`Source::is_alive`] tells whether it can still be read.
    fn attend(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Has it bind processes by itself as soon as these rules select them; whether the component can. One that can
    /// gives out the domains of the division.
    ///
    /// # Errors
    ///
    /// As [`Source::bind`].
    fn select(&mut self, _rules: &[Rule], _division: Option<&Division>) -> Result<bool, SourceError> {
        Ok(false)
    }

    /// The domains of kinds of processes that it has given out.
    fn kinds(&self) -> Vec<(ProcessKind, DomainId)> {
        Vec::new()
    }

    /// Where it has a process by itself; `None` if it binds none.
    fn bound(&self, _pid: u32) -> Option<Bound> {
        None
    }

    /// What it knows to have missed so far; `None` if that cannot be found out.
    fn missed(&self) -> Option<Missed> {
        Some(Missed::default())
    }

    /// Where it was found, if it was looked for. A process may have several components of one name.
    fn found_at(&self) -> Option<&Path> {
        None
    }

    /// Whether it still runs. What it has logged can be read in any case.
    fn is_alive(&self) -> bool {
        true
    }
}

/// A source cannot be used as asked.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The kernel component says why.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The connection to a component says why.
    #[error(transparent)]
    Component(#[from] AttachError),
    /// It has another user's rights than when it was taken.
    #[error("component {label} has another user now, so it is taken anew")]
    Changed {
        /// The component.
        label: String,
    },
    /// No memory for its logs.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// Its log area has no room for the log files.
    #[error("the log files of {label} cannot be laid out: {source}")]
    Plan {
        /// The source.
        label: String,
        /// Why.
        source: PlanError,
    },
    /// Its table of processes is full.
    #[error("{label}: {source}")]
    Bindings {
        /// The source.
        label: String,
        /// Why.
        source: BindingsFull,
    },
}
