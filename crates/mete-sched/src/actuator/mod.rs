//! How a decision takes effect (design decision D9). There is one actuator so far: [`Affinity`].
//!
//! An actuator is small and honest. It says what it [enforces](ENFORCES) and what it does not, it
//! refuses what it cannot do, and whatever it changed is put back, however the scheduler ends:
//!
//! ```text
//!   scheduler ── tells: thread, its own mask, the new one ──▶ watcher (a process of its own)
//!       │  then changes the mask                                 │
//!       ▼                                                        │ the pipe closes:
//!   ends, panics, is killed ───────────────────────────────────▶ │ puts everything back, ends
//! ```

pub mod affinity;
mod ledger;
pub mod mask;
pub mod watcher;

use std::io;
use std::time::Duration;

pub use affinity::{Affinity, ENFORCES};
pub use ledger::Restored;
pub use mask::Mask;

/// Why a placement was not carried out. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum ActuatorError {
    /// The watcher cannot be started.
    #[error("cannot start the process that puts processor masks back: {source}; so none is changed")]
    NoWatcher {
        /// Why.
        source: io::Error,
    },
    /// The watcher has ended before its time.
    #[error("the process that puts processor masks back has ended ({source}); so no more are changed")]
    WatcherGone {
        /// What the pipe to it said.
        source: io::Error,
    },
    /// The watcher does not listen.
    #[error("the process that puts processor masks back did not answer within {limit:?} (is it stopped?)")]
    WatcherSilent {
        /// How long was waited.
        limit: Duration,
    },
    /// Kernel threads that belong to one processor.
    #[error("{name} ({pid}) belongs to the kernel and cannot be moved")]
    Kernel {
        /// Its name.
        name: String,
        /// Its number.
        pid: u32,
    },
    /// Its owner lets it run elsewhere only.
    #[error("thread {thread} of {name} ({pid}) may not run on processor {processor}: its own mask is {mask}")]
    Forbidden {
        /// The process's name.
        name: String,
        /// The process.
        pid: u32,
        /// The thread.
        thread: u32,
        /// Where it should have gone.
        processor: usize,
        /// Where it may run.
        mask: Box<Mask>,
    },
    /// The kernel refuses.
    #[error("cannot move thread {thread} of {name} ({pid}) to processor {processor}: {source}")]
    Refused {
        /// The process's name.
        name: String,
        /// The process.
        pid: u32,
        /// The thread.
        thread: u32,
        /// Where it should have gone.
        processor: usize,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The processor does not exist.
    #[error("processor {processor} is out of range: masks have room for {}", Mask::PROCESSORS)]
    NoProcessor {
        /// What was asked for.
        processor: usize,
    },
}
