//! How a decision takes effect (design decision D9): [`Affinity`] places threads, [`Classes`] has them run
//! before all others or behind them, [`Pauses`] has processes wait, [`Weights`] gives control groups weights.
//!
//! An actuator is small and honest. It says what it enforces ([`affinity::ENFORCES`], [`classes::ENFORCES`],
//! [`pauses::ENFORCES`], [`weights::ENFORCES`]) and what it
//! does not, and it refuses what it cannot do. Whatever it changed is put back, however the scheduler ends:
//!
//! ```text
//!   scheduler ── notes: of what, what it was, what it gets ─▶ journal (a file) ◀── two watchers (separate processes)
//!       │  then makes the change                                 ▲                    │
//!       ▼                                                        │                    │ the pipe closes: one of
//!   ends, panics, is killed ─────────────────────────────────────┼──────────────────▶ │ them puts everything back
//!                                                                │
//!   all three killed at once: the next start of the program ─────┘ puts everything back
//! ```

pub mod affinity;
pub mod class;
pub mod classes;
mod journal;
mod launch;
mod ledger;
pub mod mask;
pub mod pauses;
mod threads;
mod undoing;
pub mod watcher;
pub mod weights;

use std::io;
use std::path::PathBuf;

pub use affinity::Affinity;
pub use class::Class;
pub use classes::Classes;
pub use ledger::Restored;
pub use mask::Mask;
pub use pauses::Pauses;
pub use weights::Weights;

/// What schedulers of this user have left behind that were killed together with both of their watchers, and
/// what came of putting it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Processor masks of threads.
    pub masks: Restored,
    /// Scheduling classes of threads.
    pub classes: Restored,
    /// Processes that were paused.
    pub pauses: Restored,
    /// Weights of control groups.
    pub weights: Restored,
}

/// Puts back what was left behind. Every program that uses an actuator must call this at its start.
#[must_use]
pub fn recover() -> Recovered {
    Recovered {
        masks: journal::recover::<threads::ThreadLedger<Mask>>().unwrap_or_default(),
        classes: journal::recover::<threads::ThreadLedger<Class>>().unwrap_or_default(),
        pauses: journal::recover::<pauses::PauseLedger>().unwrap_or_default(),
        weights: journal::recover::<weights::WeightLedger>().unwrap_or_default(),
    }
}

/// Why a change was not made. In that case, nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum ActuatorError {
    /// The watchers cannot be started.
    #[error("cannot start the processes that put back what is changed: {0}; so nothing is changed")]
    NoWatcher(#[source] io::Error),
    /// The watchers have ended before the scheduler.
    #[error(
        "the processes that put back what is changed have ended, and no other one can be started ({0}); so no more is changed"
    )]
    WatcherGone(#[source] io::Error),
    /// What must be put back cannot be noted.
    #[error("cannot note what is to be put back: {0}; so no more is changed")]
    NotNoted(#[source] io::Error),
    /// The process is a kernel thread that belongs to one processor.
    #[error("{name} ({pid}) belongs to the kernel and cannot be moved")]
    Kernel {
        /// Its name.
        name: String,
        /// Its number.
        pid: u32,
    },
    /// The owner of the thread lets it run only on other processors.
    #[error("thread {thread} of {name} ({pid}) may not run on processor {processor}: its own mask is {mask}")]
    Forbidden {
        /// The process's name.
        name: String,
        /// The process.
        pid: u32,
        /// The thread.
        thread: u32,
        /// The processor to which it was to be moved.
        processor: usize,
        /// The processors on which it may run.
        mask: Box<Mask>,
    },
    /// The kernel refused the change.
    #[error("cannot move thread {thread} of {name} ({pid}) to processor {processor}: {source}")]
    Refused {
        /// The process's name.
        name: String,
        /// The process.
        pid: u32,
        /// The thread.
        thread: u32,
        /// The processor to which it was to be moved.
        processor: usize,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The process starts threads faster than they can be moved.
    #[error(
        "cannot move all threads of {name} ({pid}) to processor {processor}: it starts new ones faster than they can be moved"
    )]
    Unsettled {
        /// Its name.
        name: String,
        /// Its number.
        pid: u32,
        /// The processor to which its threads were to be moved.
        processor: usize,
    },
    /// Another scheduler of this user puts threads in front and behind. Two of them would take each other's
    /// changes for the owners'.
    #[error("process {0} changes scheduling classes of threads already; end that one first")]
    Ruled(u32),
    /// Another scheduler of this user pauses processes. Two of them would have those go on that the other one
    /// has paused.
    #[error("process {0} pauses processes already; end that one first")]
    Pausing(u32),
    /// The control group cannot be given a weight.
    #[error("the control group {}: {why}", path.display())]
    Group {
        /// Its directory.
        path: PathBuf,
        /// What is missing, and what to do.
        why: String,
    },
    /// The processor does not exist.
    #[error("processor {0} is out of range: masks have room for {most}", most = Mask::PROCESSORS)]
    NoProcessor(usize),
}
