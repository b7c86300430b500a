//! A tracepoint recorded by perf's own means: perf_event_open(2) and a mapped ring.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::{io, ptr};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::reason::Reason;

const TYPE_TRACEPOINT: u32 = 2;
/// What `perf record` asks for at a tracepoint: IP, TID, TIME, CPU, PERIOD, RAW.
const SAMPLE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10;
const WRITE_BACKWARD: u64 = 1 << 27;
const FLAG_CLOEXEC: libc::c_ulong = 1 << 3;
const PAGE: usize = 4096;
/// Pages of data, a power of two; 512 KiB as `perf record` has it.
const PAGES: usize = 128;

/// `struct perf_event_attr` as of its first version, which every kernel takes.
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

/// A tracepoint recorded on one processor, overwriting the oldest, as long as this lives.
pub struct Recorded {
    // The event is closed after its ring is unmapped; either order is fine with the kernel.
    ring: *mut libc::c_void,
    _event: OwnedFd,
}

impl Recorded {
    /// Begins to record the tracepoint of that number.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn begin(tracepoint: u64, processor: usize) -> Result<Recorded, Reason> {
        let event =
            open(tracepoint, processor).map_err(Reason::while_trying("open the tracepoint for perf"))?;
        let bytes = (1 + PAGES) * PAGE;
        // SAFETY: a new mapping. For reading only: the kernel overwrites and waits for nobody.
        let ring =
            unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, event.as_fd(), 0) };
        Ok(Recorded { ring: ring.map_err(Reason::while_trying("map perf's ring"))?, _event: event })
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // SAFETY: the mapping that `begin` made; nobody else knows it.
        let _ = unsafe { munmap(self.ring, (1 + PAGES) * PAGE) };
    }
}

fn open(tracepoint: u64, processor: usize) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: TYPE_TRACEPOINT,
        size: size_of::<Attributes>() as u32,
        config: tracepoint,
        sample_period: 1,
        sample_type: SAMPLE,
        flags: WRITE_BACKWARD,
        ..Attributes::default()
    };
    let (any_task, no_group) = (-1, -1);
    let processor = processor as libc::c_int;
    // SAFETY: the attributes live across the call and say their own size.
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
    // SAFETY: a descriptor that the kernel just made and nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}
