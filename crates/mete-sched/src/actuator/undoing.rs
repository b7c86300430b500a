//! What every actuator does with a change: it is noted before it is made, and undone however the scheduler
//! ends.

use std::io;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use mete_keeper::Keepers;

use super::journal::Journal;
use super::ledger::{Ledger, Restored};
use super::{ActuatorError, launch};
use crate::domains::process::Process;

/// How long a change waits for a new watcher after both were killed, and for those of a scheduler that has
/// ended. The logs are not read meanwhile; they have room for the rows of that time.
const PATIENCE: Duration = Duration::from_millis(200);
/// The journal is rewritten when it has at least this number of records, and twice the number that is needed.
pub(super) const MIN_REWRITTEN: usize = 4096;

/// The changes of one actuator. When it is dropped, they are undone.
#[derive(Debug)]
pub(super) struct Undoing<L: Ledger> {
    watchers: Keepers,
    book: Book<L>,
    unnamed: Option<io::Error>,
    is_over: bool,
}

/// The changes, noted twice: in this process, and in the file that outlives it.
#[derive(Debug)]
pub(super) struct Book<L> {
    pub journal: Journal<L>,
    pub ledger: L,
    /// The number of records at which the journal is rewritten next.
    rewrite_at: usize,
}

impl<L: Ledger> Undoing<L> {
    /// Starts the watchers, with a program whose `main` calls
    /// [`take_over_if_asked`](super::watcher::take_over_if_asked).
    pub fn start(watcher: impl Fn() -> Command + Send + 'static) -> Result<Undoing<L>, ActuatorError> {
        let (journal, unnamed) = Journal::create().map_err(ActuatorError::NotNoted)?;
        let watchers = launch::start(&journal, watcher).inspect_err(|_| drop(journal.undo()))?;
        Ok(Undoing { watchers, book: Book::new(journal), unnamed, is_over: false })
    }

    /// Why the next start of this program would find nothing to undo; `None` if it would.
    pub fn unnamed(&self) -> Option<&io::Error> {
        self.unnamed.as_ref()
    }

    /// The number of another scheduler of this user that lives and has noted something of this kind. One that
    /// has ended is waited for: its watchers put back what it changed.
    pub fn other(&self, is_in: impl Fn(&L) -> bool) -> Option<u32> {
        let begin = Instant::now();
        loop {
            let other = self.book.journal.others().find(|(_, ledger)| is_in(ledger))?.0;
            if matches!(Process::find(other), Ok(Some(_))) || begin.elapsed() > PATIENCE {
                return Some(other);
            }
            sleep(PATIENCE / 10);
        }
    }

    pub fn ledger(&self) -> &L {
        &self.book.ledger
    }

    /// Waits for a watcher, if both have ended: a change without one might never be undone.
    pub fn be_watched(&self) -> Result<(), ActuatorError> {
        self.watchers.wait_for_one(PATIENCE).map_err(ActuatorError::WatcherGone)
    }

    /// Notes a change before it is made.
    pub fn note(&mut self, record: L::Record) -> Result<(), ActuatorError> {
        self.book.note(record).map_err(ActuatorError::NotNoted)
    }

    /// Notes several changes at once, before any of them is made.
    pub fn note_all(&mut self, records: impl Iterator<Item = L::Record>) -> Result<(), ActuatorError>
    where
        L::Record: Copy,
    {
        self.book.note_all(records).map_err(ActuatorError::NotNoted)
    }

    /// Undoes everything, and reports how that went.
    pub fn finish(mut self) -> Restored {
        self.undo()
    }

    fn undo(&mut self) -> Restored {
        self.is_over = true;
        let Book { journal, ledger, .. } = &self.book;
        // If the file cannot be used, the ledger of this process has to do.
        let restored = journal.undo().unwrap_or_else(|_| Some(ledger.restore())).unwrap_or_default();
        // What this process could not look at stays in the journal, and the watchers have to undo it.
        if restored.left > 0 {
            self.watchers.leave();
        } else {
            self.watchers.dismiss();
        }
        restored
    }
}

impl<L: Ledger> Drop for Undoing<L> {
    fn drop(&mut self) {
        if !self.is_over {
            self.undo();
        }
    }
}

impl<L: Ledger> Book<L> {
    pub fn new(journal: Journal<L>) -> Book<L> {
        Book { journal, ledger: L::default(), rewrite_at: MIN_REWRITTEN }
    }

    pub fn note(&mut self, record: L::Record) -> io::Result<()> {
        if self.ledger.has(&record) {
            return Ok(());
        }
        // The file first: what is not in it might not be undone.
        self.journal.append(&record)?;
        self.ledger.note(record);
        self.rewrite_if_long()
    }

    /// One may be about what another one is about: the last one counts.
    pub fn note_all(&mut self, records: impl Iterator<Item = L::Record>) -> io::Result<()>
    where
        L::Record: Copy,
    {
        let mut new = Vec::new();
        for record in records {
            if !self.ledger.has(&record) {
                self.ledger.note(record);
                new.push(record);
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        self.journal.append_all(&new)?;
        self.rewrite_if_long()
    }

    fn rewrite_if_long(&mut self) -> io::Result<()> {
        if self.journal.records() >= self.rewrite_at {
            self.ledger.forget_ended();
            self.journal.rewrite(self.ledger.records())?;
            // Twice what is left, so that the effort for each record stays the same on average.
            self.rewrite_at = MIN_REWRITTEN.max(2 * self.journal.records());
        }
        Ok(())
    }
}
