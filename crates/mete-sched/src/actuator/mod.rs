//! How a decision takes effect (design decision D9). There is one actuator so far: [`Affinity`].
//!
//! An actuator is small and honest. It says what it [enforces](ENFORCES) and what it does not, and it refuses what it
//! cannot do. Whatever it changed is put back, however the scheduler ends:
//!
//! ```text
//!   scheduler ── notes: thread, its own mask, the new one ──▶ journal (a file) ◀── two watchers (separate processes)
//!       │  then changes the mask                                 ▲                    │
//!       ▼                                                        │                    │ the pipe closes: one of
//!   ends, panics, is killed ─────────────────────────────────────┼──────────────────▶ │ them puts everything back
//!                                                                │
//!   all three killed at once: the next start of the program ─────┘ puts everything back
//! ```

pub mod affinity;
mod journal;
mod ledger;
pub mod mask;
pub mod watcher;

use std::io;

pub use affinity::{Affinity, ENFORCES};
pub use journal::recover;
pub use ledger::Restored;
pub use mask::Mask;

/// Why a placement was not carried out. In that case, nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum ActuatorError {
    /// The watchers cannot be started.
    #[error("cannot start the processes that put processor masks back: {0}; so none is changed")]
    NoWatcher(#[source] io::Error),
    /// The watchers have ended before the scheduler.
    #[error(
        "the processes that put processor masks back have ended, and no other one can be started ({0}); so no more are changed"
    )]
    WatcherGone(#[source] io::Error),
    /// What must be put back cannot be noted.
    #[error("cannot note which processor masks are to be put back: {0}; so no more are changed")]
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
    /// The processor does not exist.
    #[error("processor {0} is out of range: masks have room for {most}", most = Mask::PROCESSORS)]
    NoProcessor(usize),
}
