//! A thread that logs all the time, for measurements of a reader that runs meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use mete_measure::processor;
use mete_measure::reason::Reason;

use super::loops;

/// Passes between two checks whether to stop.
const PASSES: u64 = 1_000;

/// How fast a [`Writer`] logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as the probe allows.
    FullSpeed,
    /// A row after each piece of this number of turns of [`loops::Work::Latency`].
    Turns(u64),
}

/// Logs on a processor through the benchmark's probe as long as this lives.
pub struct Writer {
    is_done: Arc<AtomicBool>,
    passed: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread, and returns when the thread has passed the probe for the first time.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn begin(processor: usize, pace: Pace) -> Result<Writer, Reason> {
        let (is_done, passed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stop, count) = (Arc::clone(&is_done), Arc::clone(&passed));
        let thread = thread::Builder::new().name("writer".into()).spawn(move || {
            // Where the thread may not run on this processor it runs elsewhere, which the reader feels.
            let _ = processor::pin(processor);
            while !stop.load(Ordering::Relaxed) {
                write(pace);
                count.fetch_add(PASSES, Ordering::Relaxed);
            }
        })?;
        let writer = Writer { is_done, passed, thread: Some(thread) };
        // The caller measures a writer that runs, not its start.
        while writer.passed.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        Ok(writer)
    }

    /// Ends the thread and returns how often it passed the probe.
    pub fn end(mut self) -> u64 {
        self.join();
        self.passed.load(Ordering::Relaxed)
    }

    fn join(&mut self) {
        self.is_done.store(true, Ordering::Relaxed);
        // Err means that the thread panicked; then there is nothing left to stop.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Logs [`PASSES`] rows.
fn write(pace: Pace) {
    match pace {
        Pace::FullSpeed => loops::row(PASSES),
        Pace::Turns(turns) => loops::latency_work_and_row(PASSES, turns),
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.join();
    }
}
