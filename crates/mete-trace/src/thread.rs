//! What a flush thread asks of the system for itself.

use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};

/// The lowest real-time priority. It takes precedence over all ordinary threads (KLogger §5.2), and yields to
/// every other thread that has been given a real-time priority.
const PRIORITY: i32 = 1;

/// Keeps the calling thread on a processor. Returns whether that worked, in words.
pub fn bind(processor: u32) -> String {
    let mut set = CpuSet::new();
    if processor as usize >= CpuSet::MAX_CPU {
        return format!("not bound: processor {processor} cannot be named to the system");
    }
    set.set(processor as usize);
    match sched_setaffinity(None, &set) {
        Ok(()) => format!("bound to processor {processor}"),
        Err(error) => format!("not bound to processor {processor}: {error}"),
    }
}

/// Gives the calling thread a real-time priority if it may have one. Returns the priority that it has, in
/// words.
pub fn set_priority(realtime: bool) -> String {
    if !realtime {
        return "ordinary: real time was not asked for".to_owned();
    }
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // Without the reset, a process that the thread starts would inherit the priority.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: thread 0 is the calling thread; the parameters live through the call.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => format!("SCHED_FIFO, priority {PRIORITY}"),
        _ => format!("ordinary: a real-time priority was refused ({})", std::io::Error::last_os_error()),
    }
}

/// Lets other threads run for a moment.
pub fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}
