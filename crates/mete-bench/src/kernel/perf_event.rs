//! A tracepoint that is recorded by perf's own means: perf_event_open(2) and a mapped ring.

use std::os::fd::{AsFd, OwnedFd};
use std::ptr;

use mete_kernel::perf::open_recorded;
use mete_measure::reason::Reason;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The fields that `perf record` asks for at a tracepoint: IP, TID, TIME, CPU, PERIOD, RAW.
const SAMPLE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10;
/// In a ring that is written backward, the kernel overwrites the oldest records.
const WRITE_BACKWARD: u64 = 1 << 27;
const PAGE: usize = 4096;
/// Pages of data, a power of two. They make 512 KiB, the default of `perf record`.
const PAGES: usize = 128;

/// A tracepoint that is recorded on one processor as long as this lives. New events overwrite the oldest
/// ones.
pub struct Recorded {
    // `drop` unmaps the ring before the event is closed; the kernel allows either order.
    ring: *mut libc::c_void,
    _event: OwnedFd,
}

impl Recorded {
    /// Begins to record the tracepoint with that id.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn begin(tracepoint: u64, processor: usize) -> Result<Recorded, Reason> {
        let event = open_recorded(tracepoint, processor, SAMPLE, WRITE_BACKWARD)
            .map_err(Reason::while_trying("open the tracepoint for perf"))?;
        let bytes = (1 + PAGES) * PAGE;
        // SAFETY: this makes a new mapping. It is read-only, so the kernel overwrites without waiting for a
        // reader.
        let ring =
            unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, event.as_fd(), 0) };
        Ok(Recorded { ring: ring.map_err(Reason::while_trying("map perf's ring"))?, _event: event })
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `begin` made, to which there is no other pointer.
        let _ = unsafe { munmap(self.ring, (1 + PAGES) * PAGE) };
    }
}
