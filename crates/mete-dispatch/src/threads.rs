//! How the manager acts on threads.

use std::process;

use mete_sched::actuator::Mask;
use mete_sched::actuator::classes::Adopted;
use mete_sched::domains::process::own_thread;
use rustix::io::Errno;

/// Where a thread stands beside all ordinary ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Before them: it has the processor.
    Front,
    /// Among them, for a moment: it has the processor, and has stepped back. None of them is known to wait whose turn it would
    /// be, and it is to run before those that are behind.
    Aside,
    /// Among them, for a moment. One of them waits, and is to run before it.
    After,
    /// Where its owner put it.
    Own,
    /// Behind them.
    Behind,
}

/// What the manager does to threads. It asks nothing of them: to look at a thread that ends, in `/proc`, is
/// to wait for the thread that clears up behind it, which would never have the processor that the manager
/// waits on. Its tests have a model of a machine instead.
pub(crate) trait Threads {
    /// A thread that may be moved.
    type Thread: Copy;

    /// The kernel's number of a thread.
    fn number(thread: &Self::Thread) -> u32;

    /// The same thread under another number.
    fn renumbered(thread: &Self::Thread, number: u32) -> Self::Thread;

    /// Has a thread stand there.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    fn stand(&mut self, thread: &Self::Thread, standing: Standing) -> Result<(), Errno>;

    /// Has the manager's own thread run on these processors only; `None` stands for all that it began with. Whether it does.
    fn run_on(&mut self, processors: Option<&Mask>) -> bool;
}

/// The kernel's.
#[derive(Debug)]
pub(crate) struct KernelThreads {
    everywhere: Mask,
}

impl KernelThreads {
    /// For a manager that may run where this process may.
    pub fn new() -> KernelThreads {
        KernelThreads { everywhere: Mask::of_thread(process::id()).unwrap_or_default() }
    }
}

impl Threads for KernelThreads {
    type Thread = Adopted;

    fn number(thread: &Adopted) -> u32 {
        thread.thread
    }

    fn renumbered(thread: &Adopted, number: u32) -> Adopted {
        let mut thread = *thread;
        thread.thread = number;
        thread
    }

    fn stand(&mut self, thread: &Adopted, standing: Standing) -> Result<(), Errno> {
        match standing {
            Standing::Front => thread.put_in_front(),
            Standing::Aside => thread.step_aside(),
            Standing::After => thread.let_others_go_first(),
            Standing::Own => thread.release(),
            Standing::Behind => thread.put_behind(),
        }
    }

    fn run_on(&mut self, processors: Option<&Mask>) -> bool {
        processors.unwrap_or(&self.everywhere).give_to(own_thread()).is_ok()
    }
}
