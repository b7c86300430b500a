//! What the memory handler keeps beside the log: see `bpf/memory.h`.

use libbpf_rs::{MapCore, MapFlags, Object};
use mete_log::Shape;

use crate::{KernelError, map};

/// Starts the sums anew: what was charged before the characteristic was off is not true any more.
pub(crate) fn forget(object: &Object) -> Result<(), KernelError> {
    let spaces = map::find(object, "spaces")?;
    let keys: Vec<_> = spaces.keys().collect();
    for key in keys {
        spaces.delete(&key).map_err(|error| map::failed("spaces", error))?;
    }
    map::write_global(object, ".bss.memory", &vec![0; 8 * Shape::KERNEL.domains()])?;
    map::write_global(object, ".bss.missed", &0u64.to_ne_bytes())
}

/// Address spaces that found no room.
pub(crate) fn missed(object: &Object) -> Result<u64, KernelError> {
    const MAP: &str = ".bss.missed";
    let value = map::find(object, MAP)?
        .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| map::failed(MAP, error))?;
    let bytes = value.and_then(|value| value.try_into().ok());
    Ok(bytes.map_or(0, u64::from_ne_bytes))
}
