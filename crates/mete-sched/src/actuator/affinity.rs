//! Placement by processor affinity: all threads of a domain run on one processor.

use std::io;
use std::process::Command;

use mete_log::DomainId;
use rustix::io::Errno;

use super::ActuatorError;
use super::ledger::{Ledger, Record, Restored};
use super::mask::Mask;
use super::watcher::{self, Watcher};
use crate::domains::process::{self, Process};

/// What this actuator enforces, and how closely.
pub const ENFORCES: &str = "\
affinity: the threads of a placed domain run on its processor and on no other, from the moment the call returns; \
threads and processes that they start inherit it. It reserves nothing: others may run there, too, and it gives no \
share of the processor. A thread's own mask is respected and put back at the end, also after a crash or kill -9; a \
process whose starter has ended may keep the placed mask if both happened within a second before a kill -9. What is \
put back is a mask of the thread's own, also where it had none and ran wherever its cpuset let it: if that cpuset is \
widened later, the thread does not follow.";

/// Passes over a process that starts threads while it is being placed.
const MAX_PASSES: usize = 16;

/// The affinity actuator. Dropped, it puts back what it changed.
#[derive(Debug)]
pub struct Affinity {
    watcher: Watcher,
    ledger: Ledger,
}

/// A thread on its way to a processor.
struct Moving {
    record: Record,
    name: String,
    present: Mask,
}

impl Affinity {
    /// Starts the watcher, [this program](watcher::this_program) again.
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`]
    pub fn start() -> Result<Affinity, ActuatorError> {
        Affinity::start_with(watcher::this_program())
    }

    /// Starts another program as the watcher; its `main` calls [`watcher::take_over_if_asked`].
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`]
    pub fn start_with(watcher: Command) -> Result<Affinity, ActuatorError> {
        Ok(Affinity { watcher: Watcher::start(watcher)?, ledger: Ledger::default() })
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
        let mut changed: Vec<Moving> = Vec::new();
        for _ in 0..MAX_PASSES {
            let moving = self.all_moving(domain, processes, target, processor);
            let moved = moving.and_then(|moving| self.move_all(moving, processor, &mut changed));
            match moved {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    take_back(&changed);
                    return Err(error);
                }
            }
        }
        Ok(changed.len())
    }

    /// Gives the threads of a process, which has left its domain, their own masks back.
    pub fn release(&self, process: u32) {
        self.ledger.release(process);
    }

    /// Puts everything back and says how that went.
    ///
    /// # Errors
    ///
    /// [`ActuatorError`] if the watcher could not do it; it was done from here then.
    pub fn finish(mut self) -> Result<Restored, ActuatorError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<Restored, ActuatorError> {
        let ledger = std::mem::take(&mut self.ledger);
        self.watcher.finish().inspect_err(|_| {
            ledger.restore();
        })
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
        let original = self.ledger.original(process, &found, domain, present);
        let record = Record { pid: process.pid, thread, start: found.start, domain, original, told: target };
        Some(Moving { record, name: process.comm.clone(), present })
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
            self.watcher.tell(moving.record)?;
            self.ledger.note(moving.record);
            match moving.record.told.give_to(moving.record.thread) {
                Ok(()) => changed.push(moving),
                Err(Errno::SRCH) => {}
                Err(error) => return Err(refused(&moving, processor, error)),
            }
        }
        Ok(changed.len() - before)
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        if self.watcher.is_watching() {
            // Nobody is left to hear of a failure, and what can be done was done.
            let _ = self.put_back();
        }
    }
}

fn check_allowed(process: &Process, moving: &[Moving], processor: usize) -> Result<(), ActuatorError> {
    if process.is_kernel {
        return Err(ActuatorError::Kernel { name: process.comm.clone(), pid: process.pid });
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
