//! Placement by processor affinity: all threads of a domain run on one processor.

use std::io;
use std::process::Command;
use std::time::Duration;

use mete_keeper::Keepers;
use mete_log::DomainId;
use rustix::io::Errno;

use super::ActuatorError;
use super::journal::Journal;
use super::ledger::{Ledger, Record, Restored};
use super::mask::Mask;
use super::watcher;
use crate::domains::process::{self, Process};

/// What this actuator enforces, and how closely.
pub const ENFORCES: &str = "\
affinity: the threads of a placed domain run on its processor and on no other, from the moment the call returns; \
threads and processes that they start inherit it. It reserves nothing: others may run there, too, and it gives no \
share of the processor. A thread's own mask is respected and put back at the end, also after a crash or kill -9; if \
the two processes that see to that are killed at the same moment, the next start of this program by the same user puts it back. A \
process whose starter has ended may keep the placed mask if both happened within a second before a kill -9. What is \
put back is a mask of the thread's own, also where it had none and ran wherever its cpuset let it: if that cpuset is \
widened later, the thread does not follow.";

/// Passes over a process that starts threads while it is being placed.
const MAX_PASSES: usize = 16;

/// How long a watcher may take to be there again after both were killed. The logs are not read meanwhile; they have room
/// for that.
const PATIENCE: Duration = Duration::from_millis(200);
/// The journal is rewritten when it has this many records, and twice as many as are needed.
const MIN_REWRITTEN: usize = 4096;

/// The affinity actuator. Dropped, it puts back what it changed.
#[derive(Debug)]
pub struct Affinity {
    watchers: Keepers,
    book: Book,
    /// Why the next start of this program could put nothing back, if it could not.
    unnamed: Option<io::Error>,
    is_over: bool,
}

/// What was changed, twice: here, and in the file that outlives this process.
#[derive(Debug)]
struct Book {
    journal: Journal,
    ledger: Ledger,
    /// Records at which the journal is rewritten next.
    rewrite_at: usize,
}

/// A thread on its way to a processor.
struct Moving {
    record: Record,
    name: String,
    present: Mask,
}

impl Affinity {
    /// Starts the watchers, [this program](watcher::this_program) again.
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`], [`ActuatorError::NotNoted`]
    pub fn start() -> Result<Affinity, ActuatorError> {
        Affinity::start_with(watcher::this_program)
    }

    /// Starts another program as the watchers; its `main` calls [`watcher::take_over_if_asked`].
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`], [`ActuatorError::NotNoted`]
    pub fn start_with(watcher: impl Fn() -> Command + Send + 'static) -> Result<Affinity, ActuatorError> {
        let (journal, unnamed) = Journal::create().map_err(|source| ActuatorError::NotNoted { source })?;
        let watchers = watcher::start(&journal, watcher).inspect_err(|_| drop(journal.undo()))?;
        Ok(Affinity { watchers, book: Book::new(journal), unnamed, is_over: false })
    }

    /// Why masks stay as they are if this process and both that watch it are killed at the same moment: what is to be
    /// put back could not be noted in a file that the next start of this program would find. `None` where it is noted.
    pub fn unnamed(&self) -> Option<&io::Error> {
        self.unnamed.as_ref()
    }

    /// Has all threads of these processes, which belong to `domain`, run on one processor. Processes
    /// that have ended are left out. Answers how many threads changed.
    ///
    /// # Errors
    ///
    /// [`ActuatorError`]; then no thread runs elsewhere than before.
    pub fn place(
        &mut self,
        domain: DomainId,
        processes: &[u32],
        processor: usize,
    ) -> Result<usize, ActuatorError> {
        let target = Mask::single(processor).ok_or(ActuatorError::NoProcessor { processor })?;
        let gone = |source| ActuatorError::WatcherGone { source };
        self.watchers.wait_for_one(PATIENCE).map_err(gone)?;
        let mut changed: Vec<Moving> = Vec::new();
        let placed = self.place_all(domain, processes, target, processor, &mut changed);
        match placed {
            Ok(()) => Ok(changed.len()),
            Err(error) => {
                take_back(&changed);
                Err(error)
            }
        }
    }

    /// Passes over the processes until one finds all their threads on the processor: what starts during a pass may have
    /// inherited the mask of a thread that was not yet moved.
    fn place_all(
        &mut self,
        domain: DomainId,
        processes: &[u32],
        target: Mask,
        processor: usize,
        changed: &mut Vec<Moving>,
    ) -> Result<(), ActuatorError> {
        for _ in 0..MAX_PASSES {
            let moving = self.all_moving(domain, processes, target, processor)?;
            if self.move_all(moving, processor, changed)? == 0 {
                return Ok(());
            }
        }
        let moving = self.all_moving(domain, processes, target, processor)?;
        match moving.first() {
            None => Ok(()),
            Some(Moving { record, name, .. }) => {
                Err(ActuatorError::Unsettled { name: name.clone(), pid: record.pid, processor })
            }
        }
    }

    /// Gives the threads of a process, which has left its domain, their own masks back.
    pub fn release(&self, process: u32) {
        self.book.ledger.release(process);
    }

    /// Puts everything back and says how that went.
    pub fn finish(mut self) -> Restored {
        self.put_back()
    }

    fn put_back(&mut self) -> Restored {
        self.is_over = true;
        let Book { journal, ledger, .. } = &self.book;
        // Without its file, what this process remembers has to do.
        let restored = journal.undo().unwrap_or_else(|_| Some(ledger.restore())).unwrap_or_default();
        if restored.left > 0 {
            self.watchers.leave();
        } else {
            self.watchers.dismiss();
        }
        restored
    }

    /// The threads that do not run where they should, none of which may forbid it.
    fn all_moving(
        &self,
        domain: DomainId,
        processes: &[u32],
        target: Mask,
        processor: usize,
    ) -> Result<Vec<Moving>, ActuatorError> {
        let mut all = Vec::new();
        for process in processes.iter().filter_map(|&pid| Process::read(pid)) {
            for thread in process::threads(process.pid) {
                let moving = self.moving(&process, thread, domain, target);
                all.extend(moving.filter(|moving| moving.present != target));
            }
            check_allowed(&process, &all, processor)?;
        }
        Ok(all)
    }

    fn moving(&self, process: &Process, thread: u32, domain: DomainId, target: Mask) -> Option<Moving> {
        let found = Process::read_thread(process.pid, thread)?;
        let present = Mask::of_thread(thread).ok()?;
        let original = self.book.ledger.original(process, &found, domain, present);
        let record = Record { pid: process.pid, thread, start: found.start, domain, original, told: target };
        Some(Moving { record, name: process::shown(&process.comm), present })
    }

    /// Each change is told before it is made.
    fn move_all(
        &mut self,
        moving: Vec<Moving>,
        processor: usize,
        changed: &mut Vec<Moving>,
    ) -> Result<usize, ActuatorError> {
        let before = changed.len();
        for moving in moving {
            self.book.note(moving.record).map_err(|source| ActuatorError::NotNoted { source })?;
            match moving.record.told.give_to(moving.record.thread) {
                Ok(()) => changed.push(moving),
                Err(Errno::SRCH) => {}
                Err(error) => return Err(refused(&moving, processor, error)),
            }
        }
        Ok(changed.len() - before)
    }
}

impl Book {
    fn new(journal: Journal) -> Book {
        Book { journal, ledger: Ledger::default(), rewrite_at: MIN_REWRITTEN }
    }

    /// Notes a change before it is made.
    fn note(&mut self, record: Record) -> io::Result<()> {
        if self.ledger.has(&record) {
            return Ok(());
        }
        self.journal.append(record)?;
        self.ledger.note(record);
        if self.journal.records() >= self.rewrite_at {
            self.ledger.forget_ended();
            self.journal.rewrite(self.ledger.records())?;
            self.rewrite_at = MIN_REWRITTEN.max(2 * self.journal.records());
        }
        Ok(())
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        if !self.is_over {
            self.put_back();
        }
    }
}

fn check_allowed(process: &Process, moving: &[Moving], processor: usize) -> Result<(), ActuatorError> {
    if process.is_kernel {
        return Err(ActuatorError::Kernel { name: process::shown(&process.comm), pid: process.pid });
    }
    match moving.iter().find(|moving| !moving.record.original.has(processor)) {
        None => Ok(()),
        Some(Moving { record, name, .. }) => Err(ActuatorError::Forbidden {
            name: name.clone(),
            pid: record.pid,
            thread: record.thread,
            processor,
            mask: Box::new(record.original),
        }),
    }
}

fn refused(moving: &Moving, processor: usize, error: Errno) -> ActuatorError {
    let Moving { record, name, .. } = moving;
    let source = io::Error::from(error);
    ActuatorError::Refused { name: name.clone(), pid: record.pid, thread: record.thread, processor, source }
}

/// Back to where they were before this call. A thread that has ended meanwhile does not mind, and
/// the watcher knows of all.
fn take_back(changed: &[Moving]) {
    for moving in changed {
        let _ = moving.present.give_to(moving.record.thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_16_the_journal_stays_short_however_many_threads_come_and_go() {
        let mut book = Book::new(Journal::without_name().unwrap());
        let told = Mask::single(0).unwrap();
        let of_living = |_| {
            let own = std::process::id();
            let start = Process::read(own).unwrap().start;
            Record { pid: own, thread: own, start, domain: 2, original: told, told }
        };
        let of_ended = |thread| Record { pid: thread, thread, start: u64::MAX, ..of_living(()) };
        book.note(of_living(())).unwrap();
        book.note(of_living(())).unwrap();
        assert_eq!(book.journal.records(), 1, "the same once more changes nothing");
        // Numbers that no thread has.
        for thread in (5_000_000..).take(3 * MIN_REWRITTEN) {
            book.note(of_ended(thread)).unwrap();
            assert!(book.journal.records() <= MIN_REWRITTEN);
        }
        assert!(book.ledger.has(&of_living(())), "the living are not forgotten");
    }
}
