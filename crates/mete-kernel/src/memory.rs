//! What the memory handler keeps beside the log: see `bpf/memory.h`.

use libbpf_rs::{MapCore, Object};
use mete_log::Shape;

use crate::{KernelError, map, missed};

/// Starts the sums anew: what was charged before the characteristic was off is not true any more.
pub(crate) fn forget(object: &Object) -> Result<(), KernelError> {
    let spaces = map::find(object, "spaces")?;
    let keys: Vec<_> = spaces.keys().collect();
    for key in keys {
        spaces.delete(&key).map_err(|error| map::failed("spaces", error))?;
    }
    map::write_global(object, ".bss.memory", &vec![0; 8 * Shape::KERNEL.domains()])?;
    map::write_global(object, missed::SPACES, &0u64.to_ne_bytes())
}
