//! Where logs come from: the kernel component, user-level components, or a region that somebody
//! else fills. The analysis sees them through one trait and does not care.

pub mod components;
pub mod kernel;
pub mod region;

use mete_kernel::KernelError;
use mete_log::bindings::BindingsFull;
use mete_log::{Area, DomainId, EventId, PlanError, RegionError, Shape};
use mete_probe::attach::AttachError;

pub use components::{ComponentSource, Discovery};
pub use kernel::{KernelSource, Unavailable};
pub use region::RegionSource;

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

/// One component whose logs are read. It logs already, or as soon as its areas are configured.
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

    /// Binds the kernel's own principals, where the component knows them.
    ///
    /// # Errors
    ///
    /// As [`Source::bind`].
    fn bind_cgroup(&mut self, _path: &std::path::Path, _domain: DomainId) -> Result<(), SourceError> {
        Ok(())
    }

    /// What it knows to have missed so far; `None` if that cannot be found out.
    fn missed(&self) -> Option<Missed> {
        Some(Missed::default())
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
