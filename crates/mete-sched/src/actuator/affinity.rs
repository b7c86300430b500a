//! Placement by processor affinity: all threads of a domain run on one processor.

use std::io;
use std::process::Command;

use mete_log::DomainId;
use rustix::io::Errno;

use super::ledger::Restored;
use super::mask::Mask;
use super::threads::{ThreadLedger, ThreadRecord};
use super::undoing::Undoing;
use super::{ActuatorError, launch};
use crate::domains::process::{self, Process, ticks_since_boot};

/// What this actuator enforces, and how closely.
pub const ENFORCES: &str = "\
affinity: the threads of a placed domain run on its processor and on no other, from the moment the call returns; \
threads and processes that they start inherit it. It reserves nothing: other threads may run there, too, and it \
gives no share of the processor. A thread's own mask is respected and put back at the end, also after a crash or \
kill -9; if the two processes that put masks back are killed at the same moment, the next start of this program by \
the same user puts it back. A process may keep the placed mask if it was started, and its starter has ended, within \
a second before a kill -9. What is put back is a mask of the thread's own, even if it had none before and ran \
wherever its cpuset let it: if that cpuset is widened later, the thread does not follow.";

/// The number of passes over a process that starts threads while it is being placed.
const MAX_PASSES: usize = 16;

/// The affinity actuator. When it is dropped, it puts back what it changed.
#[derive(Debug)]
pub struct Affinity {
    undoing: Undoing<ThreadLedger<Mask>>,
}

/// A thread that is to be moved to a processor.
struct Moving {
    record: ThreadRecord<Mask>,
    name: String,
    present: Mask,
}

impl Affinity {
    /// Starts the watchers. They run [this program](super::watcher::this_program) again.
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`], [`ActuatorError::NotNoted`]
    pub fn start() -> Result<Affinity, ActuatorError> {
        Affinity::start_with(launch::this_program)
    }

    /// Starts the watchers with another program, whose `main` must call
    /// [`take_over_if_asked`](super::watcher::take_over_if_asked).
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`], [`ActuatorError::NotNoted`]
    pub fn start_with(watcher: impl Fn() -> Command + Send + 'static) -> Result<Affinity, ActuatorError> {
        Ok(Affinity { undoing: Undoing::start(watcher)? })
    }

    /// The reason why masks stay as they are if this process and both of its watchers are killed at the same
    /// moment: what must be put back could not be noted in a file that the next start of this program would
    /// find. `None` if it is noted.
    pub fn unnamed(&self) -> Option<&io::Error> {
        self.undoing.unnamed()
    }

    /// Moves all threads of these processes, which belong to `domain`, to one processor. Processes that have
    /// ended are left out. Returns how many threads changed.
    ///
    /// # Errors
    ///
    /// [`ActuatorError`]. In that case, every thread may run where it could run before.
    pub fn place(
        &mut self,
        domain: DomainId,
        processes: &[u32],
        processor: usize,
    ) -> Result<usize, ActuatorError> {
        let target = Mask::single(processor).ok_or(ActuatorError::NoProcessor(processor))?;
        self.undoing.be_watched()?;
        let mut changed: Vec<Moving> = Vec::new();
        let placed = self.place_all(domain, processes, target, processor, &mut changed);
        placed.map(|()| changed.len()).inspect_err(|_| take_back(&changed))
    }

    /// Passes over the processes until all of their threads are on the processor. A thread that starts during
    /// a pass may have inherited the mask of a thread that was not yet moved.
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
        // The last pass may have moved the last thread.
        let moving = self.all_moving(domain, processes, target, processor)?;
        match moving.first() {
            None => Ok(()),
            Some(Moving { record, name, .. }) => {
                Err(ActuatorError::Unsettled { name: name.clone(), pid: record.pid, processor })
            }
        }
    }

    /// Gives the threads of a process that has left its domain their own masks back.
    pub fn release(&self, process: u32) {
        self.undoing.ledger().release(process);
    }

    /// Puts everything back, and reports how that went.
    pub fn finish(self) -> Restored {
        self.undoing.finish()
    }

    /// The threads that run elsewhere. An error if a process or one of these threads forbids the move.
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
        // The mask is another thread's if the number was given to a new thread in between. That one is seen
        // by the next pass.
        Process::read_thread(process.pid, thread).filter(|again| again.start == found.start)?;
        let original = self.undoing.ledger().original(process, &found, domain, present);
        let record = ThreadRecord {
            pid: process.pid,
            thread,
            start: found.start,
            domain,
            since: ticks_since_boot(),
            original,
            told: target,
        };
        Some(Moving { record, name: process::shown(&process.comm), present })
    }

    /// Moves the threads. Each change is noted before it is made. Returns how many threads changed.
    fn move_all(
        &mut self,
        moving: Vec<Moving>,
        processor: usize,
        changed: &mut Vec<Moving>,
    ) -> Result<usize, ActuatorError> {
        let before = changed.len();
        for moving in moving {
            self.undoing.note(moving.record)?;
            match moving.record.told.give_to(moving.record.thread) {
                Ok(()) => changed.push(moving),
                // The thread has ended.
                Err(Errno::SRCH) => {}
                Err(error) => return Err(refused(&moving, processor, error)),
            }
        }
        Ok(changed.len() - before)
    }
}

/// An error if a process belongs to the kernel, or if the own mask of one of the threads lacks the processor.
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

/// Moves the threads back to where they were before this call. An error is of no consequence: the thread has
/// ended, or its record is in the journal, and a watcher will try again.
fn take_back(changed: &[Moving]) {
    for moving in changed {
        let _ = moving.present.give_to(moving.record.thread);
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::Journal;
    use super::super::undoing::{Book, MIN_REWRITTEN};
    use super::*;
    use crate::actuator::ledger::Ledger;

    #[test]
    fn log_16_the_journal_stays_short_however_many_threads_come_and_go() {
        let mut book = Book::<ThreadLedger<Mask>>::new(Journal::without_name().unwrap());
        let told = Mask::single(0).unwrap();
        let of_living = |_| {
            let own = std::process::id();
            let start = Process::read(own).unwrap().start;
            ThreadRecord {
                pid: own,
                thread: own,
                start,
                domain: DomainId::new(2),
                since: 0,
                original: told,
                told,
            }
        };
        let of_ended = |thread| ThreadRecord { pid: thread, thread, start: u64::MAX, ..of_living(()) };
        book.note(of_living(())).unwrap();
        book.note(of_living(())).unwrap();
        assert_eq!(book.journal.records(), 1, "a second note of the same change adds nothing");
        // Numbers that no thread has.
        for thread in (5_000_000..).take(3 * MIN_REWRITTEN) {
            book.note(of_ended(thread)).unwrap();
            assert!(book.journal.records() <= MIN_REWRITTEN);
        }
        assert!(book.ledger.has(&of_living(())), "the living are not forgotten");
    }
}
