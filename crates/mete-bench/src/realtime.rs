//! A real-time priority for a while, under a watchdog. The watchdog is necessary because a thread that keeps
//! a processor busy at such a priority keeps all others from it, including the kernel's own threads.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mete_measure::reason::Reason;

/// Above the priority of the recorder's flush threads, which would be noise themselves.
const PRIORITY: i32 = 2;

/// Keeps the calling thread at a real-time priority as long as this lives, but not longer than the limit.
#[derive(Debug)]
#[must_use = "the thread is an ordinary one again when this is dropped"]
pub struct Realtime {
    watchdog: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Realtime {
    /// Gives the calling thread a real-time priority. If this still lives at the limit, the watchdog makes
    /// the thread an ordinary one again; its priority is higher, so it can do so.
    ///
    /// # Errors
    ///
    /// If this process may not have such a priority, or the watchdog's thread cannot be started.
    pub fn begin(limit: Duration) -> Result<Realtime, Reason> {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let (done, until) = channel();
        let (tell, told) = channel();
        let watchdog = thread::Builder::new().name("watchdog".into()).spawn(move || {
            // A refusal is reported here, before any thread runs at a real-time priority.
            let _ = tell.send(set(0, libc::SCHED_FIFO, PRIORITY + 1));
            if until.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                let _ = set(thread, libc::SCHED_OTHER, 0);
            }
        })?;
        let realtime = Realtime { watchdog: Some((done, watchdog)) };
        // The watchdog must run at its priority before this thread gets one.
        told.recv().map_err(Reason::from_error)?.map_err(refused)?;
        set(0, libc::SCHED_FIFO, PRIORITY).map_err(refused)?;
        Ok(realtime)
    }
}

fn refused(error: io::Error) -> Reason {
    Reason::new(format!("a real-time priority was refused (root may have one): {error}"))
}

impl Drop for Realtime {
    fn drop(&mut self) {
        // The call fails only if the thread is an ordinary one already.
        let _ = set(0, libc::SCHED_OTHER, 0);
        if let Some((done, watchdog)) = self.watchdog.take() {
            // The watchdog sees the closed channel, and ends.
            drop(done);
            let _ = watchdog.join();
        }
    }
}

fn set(thread: libc::pid_t, policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // Threads and processes that this thread starts are ordinary ones.
    let policy = if priority > 0 { policy | libc::SCHED_RESET_ON_FORK } else { policy };
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the call reads one parameter block, which lives across it.
    match unsafe { libc::sched_setscheduler(thread, policy, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn policy() -> libc::c_int {
        // SAFETY: a query, which takes no memory.
        unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK }
    }

    #[test]
    fn klog_9_a_thread_has_its_real_time_priority_not_longer_than_its_limit() {
        let before = policy();
        // Long enough for the thread to look at its policy before, even if the machine is busy.
        let realtime = match Realtime::begin(Duration::from_millis(500)) {
            Ok(realtime) => realtime,
            Err(reason) => return println!("SKIPPED: {reason}"),
        };
        assert_eq!(policy(), libc::SCHED_FIFO);
        let begin = Instant::now();
        while policy() != libc::SCHED_OTHER {
            assert!(begin.elapsed() < Duration::from_secs(20), "the watchdog has failed");
            thread::sleep(Duration::from_millis(5));
        }
        drop(realtime);
        assert_eq!(policy(), before);
    }
}
