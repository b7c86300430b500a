//! Sockets that killed programs have left. The next scheduler or command of the same user removes them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, SocketFlags};

use crate::{directory, endpoint, finder};

/// Removes the sockets in this user's own directory at which no process listens. A socket that is named for a
/// living process is not called, so that no component is disturbed.
pub fn remove() {
    for path in directory::sockets(&directory::own()) {
        if !is_named_for_living_process(&path) && is_refused(&path) {
            let inode = fs::symlink_metadata(&path).map(|found| found.ino());
            // A socket that cannot be removed is found stale again.
            let _ = inode.and_then(|inode| finder::remove_stale(&path, inode));
        }
    }
}

/// Whether the process in the socket's name lives: the name is `PID.sock` or `PID-COPY.sock`.
fn is_named_for_living_process(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let pid = stem.split('-').next().and_then(|pid| pid.parse::<u32>().ok());
    pid.and_then(|pid| fs::read(format!("/proc/{pid}/stat")).ok()).is_some_and(|stat| !has_ended(&stat))
}

/// Whether a process has ended, by its line in `/proc`. The state follows the name, which can contain any
/// bytes.
fn has_ended(stat: &[u8]) -> bool {
    let name_end = stat.iter().rposition(|byte| *byte == b')').unwrap_or(0);
    stat[name_end..].starts_with(b") Z")
}

/// Whether no process listens at the socket. The process in its name can be invisible from here and yet live:
/// in a container that shares the directory.
fn is_refused(path: &Path) -> bool {
    call(path).is_err_and(|error| error.raw_os_error() == Some(Errno::CONNREFUSED.raw_os_error()))
}

fn call(path: &Path) -> io::Result<()> {
    // Without waiting: a queue that is full has a process behind it.
    let socket = endpoint::socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    Ok(rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?)
}
