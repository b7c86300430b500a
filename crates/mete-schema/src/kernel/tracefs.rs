//! Files of the tracing file system, whether or not anybody has mounted it.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Reads one, such as `events/sched/sched_switch/id`.
///
/// # Errors
///
/// What the kernel says: [`io::ErrorKind::NotFound`] if there is no such file, others if it may not be looked at.
pub fn read_tracing_file(file: &str) -> io::Result<String> {
    let mounted = MOUNTED.iter().map(Path::new).find(|at| at.join("events").is_dir());
    mounted.map_or_else(|| read_unmounted(file), |at| fs::read_to_string(at.join(file)))
}

/// The mount that this takes has no place in the tree and ends with its descriptor, so the system stays as it is.
fn read_unmounted(file: &str) -> io::Result<String> {
    let absent = |error: rustix::io::Errno| match error {
        // It is the file system that is not there.
        rustix::io::Errno::NOENT => io::Error::from(io::ErrorKind::Unsupported),
        error => error.into(),
    };
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(absent)?;
    fsconfig_create(&context).map_err(absent)?;
    let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY);
    let fd = openat(&root.map_err(absent)?, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    fs::File::from(fd).read_to_string(&mut text)?;
    Ok(text)
}
