//! The client of the Tracy profiler as a peer. It is built only on demand (feature `tracy`), because it is a
//! sizable C++ program, with threads and a port on which it waits for its viewer.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use mete_measure::reason::Reason;
use tracy_client_sys::{___tracy_emit_plot_int, ___tracy_shutdown_profiler, ___tracy_startup_profiler};

use super::loops::{keep, timed};

/// The running client. It ends when this is dropped.
///
/// All calls come from one thread, which ends before the client does. The client leaves pointers to itself in
/// every thread that calls it, and follows them when such a thread ends.
pub struct Peer {
    /// `None` once the thread shall end.
    orders: Option<Sender<u64>>,
    answers: Receiver<f64>,
    thread: Option<JoinHandle<()>>,
}

impl Peer {
    /// A note on what is measured.
    pub const NOTE: &str = "a plot: name, 64-bit value and time stamp, without domain and correspondent; there is no viewer, so it stays in fresh memory (on demand the client would log nothing)";

    /// Starts the client. It listens only on the loopback address, and does not announce itself on the
    /// network.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start() -> Result<Peer, Reason> {
        let (orders, ordered) = channel();
        let (answer, answers) = channel();
        let thread = thread::Builder::new().name("tracy peer".into()).spawn(move || {
            // SAFETY: no client is running: there is one `Peer` at a time, and it ends its own client when it
            // is dropped.
            unsafe { ___tracy_startup_profiler() };
            for times in ordered {
                if answer.send(timed(times, plots)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Peer { orders: Some(orders), answers, thread: Some(thread) })
    }

    /// Nanoseconds for each of `times` passes of a loop with a plot.
    ///
    /// # Errors
    ///
    /// If the thread has ended.
    pub fn ask(&mut self, times: u64) -> Result<f64, Reason> {
        let gone = || Reason::new("the thread that calls Tracy's client has ended");
        self.orders.as_ref().ok_or_else(gone)?.send(times).map_err(|_| gone())?;
        self.answers.recv().map_err(|_| gone())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Without a sender the thread's loop ends.
        self.orders = None;
        let ended = self.thread.take().map(JoinHandle::join);
        if matches!(ended, Some(Ok(()))) {
            // SAFETY: the one thread that called the client had started it before, and has ended.
            unsafe { ___tracy_shutdown_profiler() };
        }
    }
}

/// Logs `times` values with their time stamps. Of Tracy's records, this one is closest to a row.
#[inline(never)]
fn plots(times: u64) {
    for at in 0..times {
        keep(at);
        // SAFETY: the client runs, and the name is a constant, which lives forever.
        unsafe { ___tracy_emit_plot_int(c"mete bench row".as_ptr(), at as i64) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_17_the_client_answers_and_may_be_started_again_after_its_end() {
        for _ in 0..2 {
            let mut peer = Peer::start().unwrap();
            assert!(peer.ask(1000).unwrap() > 0.0);
        }
    }
}
