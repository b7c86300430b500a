//! What the programs know to have missed: loss that no row can tell of (design decision D10).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags, Object, libbpf_sys};

use crate::{Kernel, KernelError, event, map};

/// Where `bpf/memory.h` counts address spaces.
pub(crate) const SPACES: &str = ".bss.missed";

/// Where `struct phase` of `bpf/switch.h` counts switches.
const SWITCHES: &str = "phases";
const SWITCHES_OFFSET: usize = 8 * (event::MAX_COUNTERS + 1) + 16;

impl Kernel {
    /// Context switches that the kernel made without passing its tracepoint, as some do now and then.
    ///
    /// Service time is not lost by them: the kernel's account of the task that was not seen to
    /// arrive fills in, except for real-time tasks. What performance counters counted since the last
    /// switch that was seen is charged to nobody, because it cannot be divided.
    pub fn switches_missed(&self) -> Result<u64, KernelError> {
        let processors = 0..self.processors() as u32;
        processors.map(|processor| self.count_in(SWITCHES, processor, SWITCHES_OFFSET)).sum()
    }

    /// Address spaces that are missing from the sums of [`Characteristic::Memory`], because more
    /// than 32,768 of them were alive at once.
    ///
    /// [`Characteristic::Memory`]: crate::Characteristic::Memory
    pub fn spaces_missed(&self) -> Result<u64, KernelError> {
        self.count_in(SPACES, 0, 0)
    }

    /// Runs of the programs that the kernel left out since they were loaded, because an interrupt
    /// came to the same tracepoint in the middle of one. Kernels before 5.12 do not count them.
    pub fn runs_missed(&self) -> Result<u64, KernelError> {
        runs_of(&self.object)
    }

    pub(crate) fn count_in(&self, map: &'static str, key: u32, offset: usize) -> Result<u64, KernelError> {
        let value = map::find(&self.object, map)?.lookup(&key.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(|error| map::failed(map, error))?.unwrap_or_default();
        let count = value.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok());
        Ok(count.map_or(0, u64::from_ne_bytes))
    }
}

/// Of all programs of an object that are loaded.
pub(crate) fn runs_of(object: &Object) -> Result<u64, KernelError> {
    let loaded = object.progs().filter(|program| program.autoload());
    let missed = loaded.map(|program| runs_missed(program.as_fd()));
    missed.sum::<io::Result<u64>>().map_err(|source| KernelError::Programs { source })
}

fn runs_missed(program: BorrowedFd<'_>) -> io::Result<u64> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut bytes = size_of_val(&info) as u32;
    // SAFETY: the kernel writes at most `bytes` into `info`, and where its pointers, all zero, point
    // to nothing at all.
    let failed =
        unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut bytes) };
    if failed == 0 { Ok(info.recursion_misses) } else { Err(io::Error::last_os_error()) }
}
