//! Files of the tracing file system, whether it is mounted or not.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Reads a file of the tracing file system, such as `events/sched/sched_switch/id`.
///
/// # Errors
///
/// The kernel's error: [`io::ErrorKind::NotFound`] if there is no such file, another one if this process may
/// not read it.
pub fn read_tracing_file(file: &str) -> io::Result<String> {
    // The folder itself exists even where nothing is mounted on it.
    let mounted = MOUNTED.iter().map(Path::new).find(|at| at.join("events").is_dir());
    mounted.map_or_else(|| read_unmounted(file), |at| fs::read_to_string(at.join(file)))
}

/// Reads a file through a mount of its own. That mount has no place in the tree and ends with its descriptor,
/// so that the system stays unchanged.
fn read_unmounted(file: &str) -> io::Result<String> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(no_mount)?;
    fsconfig_create(&context).map_err(no_mount)?;
    let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY);
    let fd = openat(&root.map_err(no_mount)?, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    fs::File::from(fd).read_to_string(&mut text)?;
    Ok(text)
}

/// The error of mounting. Here "not found" means that the kernel has no such file system, not that the file
/// is missing.
fn no_mount(error: rustix::io::Errno) -> io::Error {
    match error {
        rustix::io::Errno::NOENT => io::ErrorKind::Unsupported.into(),
        error => error.into(),
    }
}
