//! What the memory handler keeps beside the log: see `bpf/memory.h`.

use libbpf_rs::{Link, MapCore, Object};
use mete_log::Shape;

use crate::attach::{attach, program, run_for_all, run_once};
use crate::{Kernel, KernelError, map, missed};

const CHARACTERISTIC: &str = "memory";

/// What is attached while memory is logged.
pub(crate) struct Memory {
    _reports: Link,
    /// Runs a program for each task when it is read.
    stock: Link,
}

impl Memory {
    /// Starts the sums anew, which were charged before the characteristic was off.
    pub(crate) fn start(object: &Object) -> Result<Memory, KernelError> {
        forget(object)?;
        if program(object, "find_offsets").is_some_and(|program| program.autoload()) {
            run_once(object, "find_offsets", CHARACTERISTIC)?;
        }
        let stock = attach(object, "take_stock", CHARACTERISTIC, "iterator over tasks")?;
        let reports = attach(object, "on_rss_stat", CHARACTERISTIC, "rss_stat tracepoint")?;
        Ok(Memory { _reports: reports, stock })
    }

    fn take_stock(&self, object: &Object) -> Result<(), KernelError> {
        run_for_all(&self.stock, "take_stock")?;
        run_once(object, "log_accounts", CHARACTERISTIC)
    }
}

impl Kernel {
    /// Logs how much memory every domain has now, and puts into the sums what was there before
    /// [`Characteristic::Memory`] was enabled or a task was bound: else an address space is counted from its
    /// next change on. To be called when log files have been laid out and when tasks have been bound; does
    /// nothing where memory is not enabled. Takes about a microsecond for each task of the system.
    ///
    /// [`Characteristic::Memory`]: crate::Characteristic::Memory
    pub fn take_stock(&mut self) -> Result<(), KernelError> {
        let memory = self.attached.memory.as_ref();
        memory.map_or(Ok(()), |memory| memory.take_stock(&self.object))
    }
}

fn forget(object: &Object) -> Result<(), KernelError> {
    let spaces = map::find(object, "spaces")?;
    let keys: Vec<_> = spaces.keys().collect();
    for key in keys {
        spaces.delete(&key).map_err(|error| map::failed("spaces", error))?;
    }
    map::write_global(object, ".bss.memory", &vec![0; 8 * Shape::KERNEL.domains()])?;
    map::write_global(object, ".bss.counted", &vec![0; Shape::KERNEL.domains()])?;
    map::write_global(object, missed::SPACES, &0u64.to_ne_bytes())
}
