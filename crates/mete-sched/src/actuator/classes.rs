//! Precedence by scheduling classes: a thread is in front of all ordinary ones, or behind them.

use std::io;
use std::process::Command;

use mete_log::DomainId;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::class::Class;
use super::ledger::Restored;
use super::threads::{ThreadLedger, ThreadRecord};
use super::undoing::Undoing;
use super::{ActuatorError, launch};
use crate::domains::process::{Process, own_thread, ticks_since_boot};

/// What this actuator enforces, and how closely.
pub const ENFORCES: &str = "\
classes: a thread in front runs whenever it can, before all ordinary threads (SCHED_FIFO); one behind runs when no \
other wants the processor (SCHED_IDLE). One that lets others go first has a nice value of 11 meanwhile. Processes \
that a thread in front starts are ordinary, with a nice value of 0; those that a thread behind starts are behind, and \
those of one that lets others go first have its nice value, until a program that puts classes back finds them: one \
whose starter has ended may stay so. Each thread's own class is put back at the end, also after a crash or \
kill -9, unless another program has changed it meanwhile; if the two processes that do this are killed at the same \
moment, the next start of this program by the same user does. Threads that are in real time already are left alone.";

/// The actuator of classes. When it is dropped, it puts back what it changed.
#[derive(Debug)]
pub struct Classes {
    undoing: Undoing<ThreadLedger<Class>>,
    front: Class,
}

/// The shortest slice that the kernel gives.
const SHORTEST_SLICE_NS: u64 = 100_000;

/// A thread whose class may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// Its number.
    pub thread: u32,
    /// What its owner gave it.
    own: Class,
    front: Class,
}

impl Classes {
    /// Starts the processes that put classes back. They run [this program](super::watcher::this_program)
    /// again. Threads in front will have this real-time priority, from 1 to below [`PRECEDENCE`], which the
    /// processes have that put classes back.
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`], [`ActuatorError::NotNoted`], [`ActuatorError::Ruled`]
    pub fn start(priority: u32) -> Result<Classes, ActuatorError> {
        Classes::start_with(priority, launch::this_program)
    }

    /// Starts them with another program, whose `main` must call
    /// [`take_over_if_asked`](super::watcher::take_over_if_asked).
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`], [`ActuatorError::NotNoted`], [`ActuatorError::Ruled`]
    pub fn start_with(
        priority: u32,
        watcher: impl Fn() -> Command + Send + 'static,
    ) -> Result<Classes, ActuatorError> {
        let undoing = Undoing::start(watcher)?;
        match undoing.other(|_| true) {
            Some(other) => Err(ActuatorError::Ruled(other)),
            None => Ok(Classes { undoing, front: Class::fifo(priority.clamp(1, PRECEDENCE - 1)) }),
        }
    }

    /// The reason why classes stay as they are if this process and both of its watchers are killed at the
    /// same moment; see [`Affinity::unnamed`](super::Affinity::unnamed).
    #[must_use]
    pub fn unnamed(&self) -> Option<&io::Error> {
        self.undoing.unnamed()
    }

    /// Notes what a thread has, so that its class may be changed. `None` if it has ended, or is in real time.
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NotNoted`], [`ActuatorError::WatcherGone`]
    pub fn adopt(
        &mut self,
        process: &Process,
        thread: u32,
        domain: DomainId,
    ) -> Result<Option<Adopted>, ActuatorError> {
        let Some((start, own)) = self.own(process, thread, domain) else { return Ok(None) };
        self.undoing.be_watched()?;
        for told in told(own, self.front) {
            self.undoing.note(ThreadRecord {
                pid: process.pid,
                thread,
                start,
                domain,
                since: ticks_since_boot(),
                original: own,
                told,
            })?;
        }
        Ok(Some(Adopted { thread, own, front: self.front }))
    }

    /// When a thread began, and the class that its owner gave it.
    fn own(&self, process: &Process, thread: u32, domain: DomainId) -> Option<(u64, Class)> {
        let found = Process::read_thread(process.pid, thread)?;
        let present = Class::of_thread(thread).ok()?;
        // The class is another thread's if the number was given to a new thread in between.
        Process::read_thread(process.pid, thread).filter(|again| again.start == found.start)?;
        let own = self.undoing.ledger().original(process, &found, domain, present);
        own.is_ordinary().then_some((found.start, own))
    }

    /// A thread has another number now, because it has started another program. It gets back the class that its owner gave it, unless
    /// another program has changed that. [`Classes::adopt`] takes it up again.
    pub fn follow(&self, former: u32, thread: u32) {
        let own =
            Class::of_thread(thread).ok().and_then(|present| self.undoing.ledger().own(former, present));
        // An error means that it has ended.
        let _ = own.map(|own| own.give_to(thread));
    }

    /// Puts everything back, and reports how that went.
    pub fn finish(self) -> Restored {
        self.undoing.finish()
    }
}

/// The classes that a thread may have from here. Its own is one, too: a thread that has it was not changed by another program.
fn told(own: Class, front: Class) -> [Class; 4] {
    [own.behind(), own.after(), front, own]
}

impl Adopted {
    /// Puts the thread in front of all ordinary ones.
    ///
    /// # Errors
    ///
    /// The kernel's answer; `ESRCH` if the thread has ended.
    pub fn put_in_front(&self) -> Result<(), Errno> {
        self.front.give_to(self.thread)
    }

    /// Puts the thread behind all others. It keeps the nice value and the slice that it has: it is to have its own ones.
    ///
    /// # Errors
    ///
    /// The kernel's answer; `ESRCH` if the thread has ended.
    pub fn put_behind(&self) -> Result<(), Errno> {
        self.own.behind().give_to(self.thread)
    }

    /// Gives the thread its own class, and the shortest slice: among ordinary threads, it has the earliest deadline. Linux
    /// 6.12 and later; before, it has only its class.
    ///
    /// # Errors
    ///
    /// The kernel's answer; `ESRCH` if the thread has ended.
    pub fn step_aside(&self) -> Result<(), Errno> {
        self.own.give_with_slice(self.thread, SHORTEST_SLICE_NS)
    }

    /// Has almost all ordinary threads go first.
    ///
    /// # Errors
    ///
    /// The kernel's answer; `ESRCH` if the thread has ended.
    pub fn let_others_go_first(&self) -> Result<(), Errno> {
        self.own.after().give_to(self.thread)
    }

    /// Gives the thread its own class.
    ///
    /// # Errors
    ///
    /// The kernel's answer; `ESRCH` if the thread has ended.
    pub fn release(&self) -> Result<(), Errno> {
        self.own.give_to(self.thread)
    }
}

/// Takes precedence over threads in front, for the process that puts classes back: where real-time threads
/// use all processors, it would wait for its turn otherwise. An error is of no consequence: unless it was
/// told otherwise (`sched_rt_runtime_us`), the kernel gives ordinary threads a twentieth of each second.
pub(super) fn take_precedence() {
    // The scheduler may have bounded the time of its own real-time threads. To put back many threads takes
    // longer.
    let bound = getrlimit(Resource::Rttime);
    let _ = setrlimit(Resource::Rttime, Rlimit { current: bound.maximum, ..bound });
    let own = own_thread();
    let _ = Class::fifo(PRECEDENCE).give_to(own);
}

/// The real-time priority of the processes that put classes back, and of the scheduler that puts threads in
/// front.
pub const PRECEDENCE: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_16_each_class_that_a_thread_is_given_is_known_to_those_that_put_classes_back() {
        // A thread of its own: without privileges it cannot come back.
        let given = std::thread::spawn(|| {
            let (thread, front) = (own_thread(), Class::fifo(1));
            let own = Class::of_thread(thread).unwrap();
            let adopted = Adopted { thread, own, front };
            let ways = [
                Adopted::step_aside,
                Adopted::let_others_go_first,
                Adopted::put_behind,
                Adopted::put_in_front,
            ];
            let given = |way: &fn(&Adopted) -> Result<(), Errno>| match way(&adopted) {
                Ok(()) => Some(Class::of_thread(thread).unwrap()),
                Err(error) => (error != Errno::PERM).then(|| panic!("{error}")),
            };
            for class in ways.iter().filter_map(given) {
                assert!(told(own, front).contains(&class), "{class:?} is none of {:?}", told(own, front));
                if let Err(error) = adopted.release() {
                    assert!(!rustix::process::geteuid().is_root(), "{error}");
                    return;
                }
            }
        });
        given.join().unwrap();
    }
}
