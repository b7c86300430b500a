//! What the programs know to have missed: loss that no row can report (design decision D10).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::skel::Skel;
use libbpf_rs::{Object, libbpf_sys};

use crate::skeleton::{globals, table};
use crate::{Kernel, KernelError};

impl Kernel {
    /// The number of context switches that the kernel made without passing its tracepoint, as it does now and then.
    ///
    /// They lose no service time: the kernel's own account of the task that was not seen to arrive fills the gap,
    /// except for real-time tasks. What performance counters counted since the last switch that was seen cannot be
    /// divided, so it is charged to no domain.
    pub fn switches_missed(&self) -> Result<u64, KernelError> {
        let phases = table!(mete, self.skeleton, phases);
        (0..self.processors() as u32).map(|at| Ok(phases.read(at)?.map_or(0, |phase| phase.missed))).sum()
    }

    /// The number of address spaces that are missing from the sums of [`Characteristic::Memory`], because more than
    /// 32,768 of them were alive at once.
    ///
    /// [`Characteristic::Memory`]: crate::Characteristic::Memory
    pub fn spaces_missed(&self) -> Result<u64, KernelError> {
        Ok(globals!(mete, self.skeleton, bss_missed).read_all()?.spaces_missed)
    }

    /// The number of runs of the programs that the kernel left out since they were loaded, because an interrupt came to
    /// the same tracepoint in the middle of a run. Kernels before 5.12 do not count them.
    pub fn runs_missed(&self) -> Result<u64, KernelError> {
        runs_of(self.skeleton.object())
    }
}

/// The sum over all loaded programs of an object.
pub(crate) fn runs_of(object: &Object) -> Result<u64, KernelError> {
    let loaded = object.progs().filter(|program| program.autoload());
    let missed = loaded.map(|program| runs_missed(program.as_fd()));
    missed.sum::<io::Result<u64>>().map_err(|source| KernelError::Programs { source })
}

fn runs_missed(program: BorrowedFd<'_>) -> io::Result<u64> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut bytes = size_of_val(&info) as u32;
    // SAFETY: the kernel writes at most `bytes` bytes into `info`. All pointers in it are zero, so the kernel writes
    // nothing to where they point.
    let failed =
        unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut bytes) };
    if failed == 0 { Ok(info.recursion_misses) } else { Err(io::Error::last_os_error()) }
}
