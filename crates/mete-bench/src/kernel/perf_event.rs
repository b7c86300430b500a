//! A tracepoint that is recorded by perf's own means: perf_event_open(2) and a mapped ring.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::{io, ptr};

use mete_measure::reason::Reason;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const TYPE_TRACEPOINT: u32 = 2;
/// The fields that `perf record` asks for at a tracepoint: IP, TID, TIME, CPU, PERIOD, RAW.
const SAMPLE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10;
const WRITE_BACKWARD: u64 = 1 << 27;
const FLAG_CLOEXEC: libc::c_ulong = 1 << 3;
const PAGE: usize = 4096;
/// Pages of data, a power of two. They make 512 KiB, the default of `perf record`.
const PAGES: usize = 128;

/// `struct perf_event_attr` in its first version, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// A tracepoint that is recorded on one processor as long as this lives. New events overwrite the oldest ones.
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
        let event =
            open(tracepoint, processor).map_err(Reason::while_trying("open the tracepoint for perf"))?;
        let bytes = (1 + PAGES) * PAGE;
        // SAFETY: this makes a new mapping. It is read-only, so the kernel overwrites without waiting for a reader.
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

fn open(tracepoint: u64, processor: usize) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: TYPE_TRACEPOINT,
        // By this the kernel knows which version of the structure it gets.
        size: size_of::<Attributes>() as u32,
        config: tracepoint,
        sample_period: 1,
        sample_type: SAMPLE,
        // In a ring that is written backward, the kernel overwrites the oldest records.
        flags: WRITE_BACKWARD,
        ..Attributes::default()
    };
    let (any_task, no_group) = (-1, -1);
    let processor = processor as libc::c_int;
    // SAFETY: the attributes live across the call and contain their own size.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            any_task,
            processor,
            no_group,
            FLAG_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: this is a descriptor that the kernel has just made, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}
