//! What the programs know to have missed: loss that no row can report (design decision D10).

use libbpf_rs::skel::Skel;

use super::Kernel;
use crate::KernelError;
use crate::program::missed_runs;
use crate::skeleton::{globals, table};

impl Kernel {
    /// The number of context switches that the kernel made without passing its tracepoint, as it does now and
    /// then.
    ///
    /// They lose no service time: the kernel's own account of the task that was not seen to arrive fills the
    /// gap, except for real-time tasks. What performance counters counted since the last switch that was seen
    /// cannot be divided, so it is charged to no domain.
    pub fn missed_switches(&self) -> Result<u64, KernelError> {
        let phases = table!(mete, self.skeleton, phases);
        (0..self.processors() as u32).map(|at| Ok(phases.read(at)?.map_or(0, |phase| phase.missed))).sum()
    }

    /// The number of address spaces that are missing from the sums of [`Characteristic::Memory`], because
    /// more than 32,768 of them were alive at once.
    ///
    /// [`Characteristic::Memory`]: crate::Characteristic::Memory
    pub fn missed_spaces(&self) -> Result<u64, KernelError> {
        Ok(globals!(mete, self.skeleton, bss_missed).read_all()?.spaces_missed)
    }

    /// The number of runs of the programs that the kernel left out since they were loaded, because an
    /// interrupt came to the same tracepoint in the middle of a run. Kernels before 5.12 do not count them.
    pub fn missed_runs(&self) -> Result<u64, KernelError> {
        missed_runs(self.skeleton.object())
    }
}
