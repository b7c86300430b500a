//! Numbers of classic tracepoints, from the tracing file system.

use std::fs;
use std::io::{self, Read};

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::KernelError;

const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The number of the tracepoint `group/name`.
pub(crate) fn tracepoint_id(tracepoint: &str) -> Result<u64, KernelError> {
    let file = format!("events/{tracepoint}/id");
    let mounted = MOUNTED.iter().find_map(|at| fs::read_to_string(format!("{at}/{file}")).ok());
    let text = mounted.map_or_else(|| read_unmounted(&file), Ok);
    text.and_then(|text| text.trim().parse().map_err(io::Error::other))
        .map_err(|source| KernelError::Tracefs { tracepoint: tracepoint.into(), source })
}

/// Reads a file of the tracing file system where nobody has mounted it. The mount that this takes
/// has no place in the tree and ends with its descriptor, so the system stays as it is.
fn read_unmounted(file: &str) -> io::Result<String> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)?;
    let mut text = String::new();
    let fd = openat(&root, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    fs::File::from(fd).read_to_string(&mut text)?;
    Ok(text)
}
