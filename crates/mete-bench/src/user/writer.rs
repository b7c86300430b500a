//! A thread that logs all the time, for measurements of a reader that runs meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mete_measure::processor;
use mete_measure::reason::Reason;

use super::loops;
use crate::background::Background;

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
    passed: Arc<AtomicU64>,
    thread: Background,
}

impl Writer {
    /// Starts the thread, and returns when the thread has passed the probe for the first time.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn begin(processor: usize, pace: Pace) -> Result<Writer, Reason> {
        let passed = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&passed);
        let thread = Background::start("writer", move |is_done| {
            // Where the thread may not run on this processor it runs elsewhere, which the reader feels.
            let _ = processor::pin(processor);
            while !is_done.load(Ordering::Relaxed) {
                write(pace);
                count.fetch_add(PASSES, Ordering::Relaxed);
            }
        })?;
        let writer = Writer { passed, thread };
        // The caller measures a writer that runs, not its start.
        while writer.passed.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        Ok(writer)
    }

    /// Ends the thread and returns how often it passed the probe.
    pub fn end(self) -> u64 {
        drop(self.thread);
        self.passed.load(Ordering::Relaxed)
    }
}

/// Logs [`PASSES`] rows.
fn write(pace: Pace) {
    match pace {
        Pace::FullSpeed => loops::row(PASSES),
        Pace::Turns(turns) => loops::latency_work_and_row(PASSES, turns),
    }
}
