//! What the memory handler keeps beside the log: see `bpf/memory.bpf.h`.

use libbpf_rs::Link;
use mete_log::Shape;

use super::Kernel;
use crate::KernelError;
use crate::skeleton::mete::MeteSkel;
use crate::skeleton::mete::types::{bss_counted, bss_memory, bss_missed};
use crate::skeleton::{globals, program, table};

const CHARACTERISTIC: &str = "memory";

/// What is attached while memory is logged.
pub(crate) struct Memory {
    _reports: Link,
    /// Runs a program for each task when it is read.
    stock: Link,
}

impl Memory {
    /// Attaches the programs, with sums that begin at 0: what was charged in an earlier run is forgotten.
    pub(crate) fn start(skeleton: &MeteSkel<'static>) -> Result<Memory, KernelError> {
        forget(skeleton)?;
        let find_offsets = program!(skeleton, find_offsets);
        // It is not loaded on kernels that count pages in one place.
        if find_offsets.has_hook() {
            find_offsets.run_once()?;
        }
        let stock = program!(skeleton, take_stock).attach(CHARACTERISTIC, "iterator over tasks")?;
        let reports = program!(skeleton, on_rss_stat).attach(CHARACTERISTIC, "rss_stat tracepoint")?;
        Ok(Memory { _reports: reports, stock })
    }
}

impl Kernel {
    /// Logs how much memory every domain has now. Adds to the sums the pages that were there before
    /// [`Characteristic::Memory`] was enabled or a task was bound; without this call, an address space is
    /// counted from its next change on.
    ///
    /// Call it when log files have been laid out, and when tasks have been bound. It does nothing where
    /// memory is not enabled, and takes about a microsecond for each task of the system.
    ///
    /// [`Characteristic::Memory`]: crate::Characteristic::Memory
    pub fn take_stock(&mut self) -> Result<(), KernelError> {
        let Some(memory) = &self.attached.memory else { return Ok(()) };
        program!(self.skeleton, take_stock).run_for_all(&memory.stock)?;
        program!(self.skeleton, log_accounts).run_once()
    }
}

fn forget(skeleton: &MeteSkel<'static>) -> Result<(), KernelError> {
    let spaces = table!(mete, skeleton, spaces);
    // All keys first: an iteration begins anew when the element that it stands at is removed.
    let keys: Vec<_> = spaces.keys().collect();
    for key in keys {
        spaces.delete(key)?;
    }
    const DOMAINS: usize = Shape::KERNEL.domains();
    globals!(mete, skeleton, bss_memory).write_all(&bss_memory { domain_bytes: [0; DOMAINS] })?;
    globals!(mete, skeleton, bss_counted).write_all(&bss_counted { is_counted: [0; DOMAINS] })?;
    globals!(mete, skeleton, bss_missed).write_all(&bss_missed { spaces_missed: 0 })
}
