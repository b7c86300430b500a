//! What a flush thread and its recorder tell each other.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::completeness::Account;
use crate::description::ClockAnchor;

/// What a flush thread and its recorder tell each other.
#[derive(Debug, Default)]
pub(crate) struct FlushLink {
    /// Tells the thread to empty its buffer and end.
    pub stop: AtomicBool,
    /// Tells the thread that other buffers wait for it, with which it must go on.
    pub exchange: AtomicBool,
    /// Counts requests to write everything.
    pub requests: AtomicU64,
    /// The number of the last request that the thread has answered.
    pub answered: AtomicU64,
    /// The number of records of watched events that the thread has moved.
    pub seen: AtomicU64,
    pub report: Mutex<Report>,
}

impl FlushLink {
    /// The report, also after a panic: no code that holds the lock can leave it half changed.
    pub fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a flush thread has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What is written, and what was lost so far.
    pub account: Account,
    /// Bytes of blocks written.
    pub bytes: u64,
    /// Blocks written.
    pub blocks: u64,
    /// Flushes.
    pub flushes: u64,
    /// Processor time that the thread has used, in nanoseconds.
    pub processor_time_ns: u64,
    /// Why the last attempt to write has failed, if it has. The thread goes on trying.
    pub write_error: Option<String>,
    /// The last fault in the buffer.
    pub garbled: Option<String>,
    pub(crate) placement: String,
    pub(crate) scheduling: String,
    pub(crate) anchors: Vec<ClockAnchor>,
}
