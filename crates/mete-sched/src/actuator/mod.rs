//! How a decision takes effect (design decision D9). There is one actuator so far: [`Affinity`].
//!
//! An actuator is small and honest. It says what it [enforces](ENFORCES) and what it does not, it
//! refuses what it cannot do, and whatever it changed is put back, however the scheduler ends:
//!
//! ```text
//!   scheduler ── notes: thread, its own mask, the new one ──▶ journal (a file) ◀── two watchers (processes of their own)
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
pub use ledger::Restored;
pub use mask::Mask;

/// Puts back what schedulers of this user have left that were killed together with both of their watchers; `None` if
/// there is nothing of the kind. To be called at the start of every program that uses [`Affinity`]: it costs a look
/// into a directory.
pub fn recover() -> Option<Restored> {
    journal::undo_all_left()
}

/// Why a placement was not carried out. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum ActuatorError {
    /// The watchers cannot be started.
    #[error("cannot start the processes that put processor masks back: {source}; so none is changed")]
    NoWatcher {
        /// Why.
        source: io::Error,
    },
    /// The watchers have ended before their time.
    #[error(
        "the processes that put processor masks back have ended, and no other one can be started ({source}); so no more are changed"
    )]
    WatcherGone {
        /// Why no other one can be started.
        source: io::Error,
    },
    /// What is to be put back cannot be noted.
    #[error("cannot note which processor masks are to be put back: {source}; so no more are changed")]
    NotNoted {
        /// Why.
        source: io::Error,
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
    /// A process starts threads faster than they can be moved.
    #[error(
        "cannot move all threads of {name} ({pid}) to processor {processor}: it starts new ones faster than they can be moved"
    )]
    Unsettled {
        /// Its name.
        name: String,
        /// Its number.
        pid: u32,
        /// Where its threads should have gone.
        processor: usize,
    },
    /// The processor does not exist.
    #[error("processor {processor} is out of range: masks have room for {}", Mask::PROCESSORS)]
    NoProcessor {
        /// What was asked for.
        processor: usize,
    },
}
