//! Weights of cgroups that are set from outside.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use libbpf_rs::{Map, MapCore, MapFlags, ProgramInput, ProgramMut};
use mete_kernel::Weight;

use crate::ExtError;

/// The number of the root, which competes with no other.
const ROOT: u32 = 0;
const NO_CONTROLLER: &str = "it has no share of its own, because its parent does not distribute processor time: \
                             write +cpu into the parent's cgroup.subtree_control";

/// Sets the weight of a cgroup, or takes it back, by a scheduler's program, which knows cgroups by the
/// numbers of this map.
pub(crate) fn set_weight(
    program: &ProgramMut<'_>,
    numbers: &Map<'_>,
    cgroup: &Path,
    weight: Option<Weight>,
) -> Result<(), ExtError> {
    let failed = |why: String| ExtError::Cgroup { path: cgroup.into(), why };
    let folder = File::open(cgroup).map_err(|error| failed(error.to_string()))?;
    let inode = folder.metadata().map_err(|error| failed(error.to_string()))?.ino();
    let words = [number_of(numbers, &folder).map_err(failed)?, weight.map_or(0, Weight::get)];
    let mut arguments = [&inode.to_ne_bytes()[..], &words.map(u32::to_ne_bytes).concat()].concat();
    let input = ProgramInput { context_in: Some(&mut arguments), ..ProgramInput::default() };
    let done =
        program.test_run(input).map_err(|error| failed(format!("the kernel does not set it: {error:#}")))?;
    if done.return_value == 0 { Ok(()) } else { Err(failed("it has just been removed".into())) }
}

/// The number that the scheduler has given to a cgroup; an error says why it has none.
fn number_of(numbers: &Map<'_>, folder: &File) -> Result<u32, String> {
    let key = folder.as_raw_fd().to_ne_bytes();
    let value = match numbers.lookup(&key, MapFlags::ANY) {
        Ok(Some(value)) => value,
        Ok(None) => return Err(NO_CONTROLLER.into()),
        Err(error) => return Err(format!("{error:#}")),
    };
    let number = value.try_into().map_or(0, u32::from_ne_bytes);
    if number == ROOT {
        return Err("the root of all control groups competes with no other".into());
    }
    Ok(number)
}
