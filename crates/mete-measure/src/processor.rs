//! The processors that there are, and how a thread stays on one of them.

use std::io;

use mete_base::processors;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::reason::Reason;

/// Keeps the calling thread on one processor as long as this lives. Then the thread may run where it could
/// before.
#[derive(Debug)]
#[must_use = "the thread is let go when this is dropped"]
pub struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// Pins the calling thread.
    ///
    /// # Errors
    ///
    /// If the processor does not exist or this thread may not run on it.
    pub fn to(processor: usize) -> Result<Pinned, Reason> {
        // Asked before pinning: dropping the guard restores it.
        let before =
            sched_getaffinity(None).map_err(Reason::while_trying("ask for the thread's processors"))?;
        pin(processor)?;
        Ok(Pinned { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // After a failure the thread stays on its processor, on which it may run.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Pins the calling thread for good. This is for threads and processes that end with the measurement.
///
/// # Errors
///
/// As [`Pinned::to`].
pub fn pin(processor: usize) -> Result<(), Reason> {
    pin_bare(processor).map_err(Reason::while_trying(format!("run on processor {processor}")))
}

/// Does the same as [`pin`] without allocating. This is for a bare child of a process that may have other
/// threads.
///
/// # Errors
///
/// The error of the kernel.
pub fn pin_bare(processor: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    // The set has no place for a greater number. It stays empty then, which the kernel refuses.
    if processor < CpuSet::MAX_CPU {
        only.set(processor);
    }
    Ok(sched_setaffinity(None, &only)?)
}

/// The processors that this thread may run on, in order; never empty.
pub fn allowed() -> Vec<usize> {
    match processors::allowed() {
        Ok(allowed) if !allowed.is_empty() => allowed,
        _ => vec![0],
    }
}

/// The processor to measure on: the last one, which as a rule serves the fewest interrupts.
pub fn quietest() -> usize {
    allowed().last().copied().unwrap_or(0)
}

/// Another processor than that one, for threads that must not disturb it. On a machine with one processor it
/// is the same one.
pub fn other_than(processor: usize) -> usize {
    allowed().into_iter().find(|&other| other != processor).unwrap_or(processor)
}

/// SCHED_BATCH for the calling thread, as long as this lives. A thread that wakes another one under this
/// policy keeps the processor until it blocks, so each message takes the same two switches.
#[derive(Debug)]
#[must_use = "the thread is an ordinary one again when this is dropped"]
pub struct Batch;

impl Batch {
    /// Begins; does nothing if the kernel refuses.
    pub fn begin() -> Batch {
        set_policy(libc::SCHED_BATCH);
        Batch
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        set_policy(libc::SCHED_OTHER);
    }
}

fn set_policy(policy: libc::c_int) {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads one parameter block, which lives across it.
    unsafe { libc::sched_setscheduler(0, policy, &parameters) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_pinned_may_run_again_wherever_it_might_before() {
        let before = allowed();
        let processor = quietest();
        let pinned = Pinned::to(processor).unwrap();
        assert_eq!(allowed(), [processor]);
        drop(pinned);
        assert_eq!(allowed(), before);
    }

    #[test]
    fn a_processor_that_does_not_exist_is_reported() {
        let before = allowed();
        let error = Pinned::to(100_000).unwrap_err().to_string();
        assert!(error.contains("processor 100000"), "{error}");
        assert_eq!(allowed(), before);
    }

    #[test]
    fn batch_ends_with_its_guard() {
        // SAFETY: a query.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        drop(Batch::begin());
        assert_eq!(policy(), before);
    }
}
