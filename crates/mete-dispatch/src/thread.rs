//! The manager's own thread: in front of all threads that it dispatches, and bounded in time.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libbpf_rs::{MapHandle, RingBufferBuilder};
use mete_log::clock::nanoseconds;
use mete_policy::Nanoseconds;
use mete_sched::actuator::Class;
use mete_sched::actuator::classes::PRECEDENCE;
use mete_sched::domains::process::own_thread;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, Timespec};

use crate::bell::Bell;
use crate::counts::Counts;
use crate::error::DispatchError;
use crate::manager::Manager;
use crate::memory::Row;
use crate::message::now;
use crate::threads::KernelThreads;

/// For how long the thread may run without a pause. Then the kernel ends the process, and classes are put
/// back.
const LONGEST_RUN: Duration = Duration::from_millis(200);

/// After so long without a pause the thread makes one: where clients wake on other processors all the time,
/// there is always something to do.
const BETWEEN_PAUSES: Nanoseconds = Nanoseconds::from_millis(50);
/// A pause, and the least time for which waiting is one.
const PAUSE: Nanoseconds = Nanoseconds::from_micros(50);

/// How often the thread looks whether it begins, if its bell is not rung.
const BEFORE: Duration = Duration::from_millis(100);

/// What the threads share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub stops: AtomicBool,
    /// The process is done with all that makes its other threads wait, such as starting processes and threads: a manager that waits for
    /// an ordinary one behind a client that it has put in front waits until the kernel lets ordinary threads run, for a second.
    pub begins: AtomicBool,
    pub counts: Mutex<Counts>,
}

/// Runs the manager until it is to stop. Says through `started` that it has the priority that it needs, or
/// why not.
pub(crate) fn run(
    mut manager: Manager<KernelThreads>,
    ring: &MapHandle,
    bell: &Bell,
    shared: &Arc<Shared>,
    started: &SyncSender<Result<(), DispatchError>>,
) -> Result<(), DispatchError> {
    let own = own_thread();
    let prepared = Class::fifo(PRECEDENCE).give_to(own).map_err(DispatchError::NoPriority);
    let is_prepared = prepared.is_ok();
    // The other side waits for it.
    let _ = started.send(prepared);
    if !is_prepared {
        return Ok(());
    }
    // Room for all rows of the ring, so that none is allocated later.
    let rows = std::cell::RefCell::new(VecDeque::with_capacity(1 << 15));
    let mut builder = RingBufferBuilder::new();
    let keep = |bytes: &[u8]| {
        rows.borrow_mut().extend(Row::from_bytes(bytes));
        0
    };
    builder.add(ring, keep).map_err(DispatchError::Attach)?;
    let ring = builder.build().map_err(DispatchError::Attach)?;
    // SAFETY: the descriptor belongs to the ring, which outlives its use here.
    let of_ring = unsafe { BorrowedFd::borrow_raw(ring.epoll_fd()) };
    while !shared.begins.load(Ordering::Acquire) && !shared.stops.load(Ordering::Acquire) {
        wait(&[bell.as_fd(), bell.as_fd()], BEFORE)?;
        bell.silence();
    }
    let mut longest = Duration::ZERO;
    let mut paused = now();
    while !shared.stops.load(Ordering::Acquire) {
        paused = pause(paused, || wait(&[of_ring, bell.as_fd()], longest))?;
        bell.silence();
        ring.consume_raw();
        longest = manager.step(now(), &mut rows.borrow_mut())?;
        // This thread never waits for the lock: the thread that holds it to read the counts has no real-time
        // priority.
        if let Ok(mut counts) = shared.counts.try_lock() {
            *counts =
                Counts { own_ns: Nanoseconds::new(nanoseconds(ClockId::ThreadCPUTime)), ..manager.counts };
        }
    }
    Ok(())
}

/// Waits, and goes on waiting for a moment if that was no pause and the last one is long over. When the last
/// pause was then.
fn pause(
    last: Nanoseconds,
    wait: impl FnOnce() -> Result<(), DispatchError>,
) -> Result<Nanoseconds, DispatchError> {
    let begin = now();
    wait()?;
    let end = now();
    if end.saturating_sub(begin) >= PAUSE {
        return Ok(end);
    }
    if end.saturating_sub(last) < BETWEEN_PAUSES {
        return Ok(last);
    }
    std::thread::sleep(Duration::from_nanos(PAUSE.get()));
    Ok(now())
}

fn wait(files: &[BorrowedFd<'_>; 2], longest: Duration) -> Result<(), DispatchError> {
    let mut files = files.each_ref().map(|file| PollFd::new(file, PollFlags::IN));
    let longest = Timespec::try_from(longest).ok();
    match poll(&mut files, longest.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(DispatchError::System { what: "wait", source: error.into() }),
    }
}

/// The bound of time for all real-time threads of this process, and what is said when it is reached; put back
/// when it is dropped.
#[derive(Debug)]
pub(crate) struct Bound {
    before: Rlimit,
    /// What was done at the signal.
    handler: libc::sighandler_t,
}

/// Says why the process ends, and has it end.
extern "C" fn say_why(signal: libc::c_int) {
    const WHY: &[u8] =
        b"mete: the kernel ended the dispatcher: it had been in real time for 200 ms without a pause. All \
        classes are put back.\n";
    // SAFETY: a handler may call these, and the text lives for ever. The signal is delivered again after the
    // return.
    unsafe {
        libc::write(libc::STDERR_FILENO, WHY.as_ptr().cast(), WHY.len());
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

impl Bound {
    pub fn set() -> io::Result<Bound> {
        let before = getrlimit(Resource::Rttime);
        let longest = LONGEST_RUN.as_micros() as u64;
        // A limit that is stricter already stays.
        let bound = before.maximum.into_iter().chain(before.current).fold(longest, u64::min);
        setrlimit(Resource::Rttime, Rlimit { current: Some(bound), ..before })?;
        // SAFETY: the handler only calls what a handler may.
        let handler = unsafe { libc::signal(libc::SIGXCPU, say_why as *const () as libc::sighandler_t) };
        Ok(Bound { before, handler })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // It cannot fail: every process may raise its limit up to the maximum, which stayed as it was.
        let _ = setrlimit(Resource::Rttime, self.before);
        if self.handler != libc::SIG_ERR {
            // SAFETY: it is what was there before.
            unsafe { libc::signal(libc::SIGXCPU, self.handler) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_always_has_something_to_do_pauses_all_the_same_and_seldom() {
        let last = now();
        // Waiting ends at once, and the last pause was just now, or long ago. Other load may be a pause, too.
        let goes_on = || (0..1000).any(|_| pause(last, || Ok(())).unwrap() == last);
        assert!(goes_on());
        let long_ago = last.saturating_sub(BETWEEN_PAUSES);
        assert!(pause(long_ago, || Ok(())).unwrap() >= last.saturating_add(PAUSE));
        // One that has waited needs no other pause.
        let waits = || {
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        };
        assert!(pause(last, waits).unwrap() > last);
    }
}
