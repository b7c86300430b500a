//! Sockets that programs have left which were killed: they are removed by the next scheduler or command of the same
//! user.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, SocketFlags};

use crate::{directory, endpoint, finder};

/// Removes the sockets in this user's own directory that no process listens at. Those that are named for a process that
/// lives are not asked, so that no component is disturbed.
pub fn remove() {
    for path in directory::sockets(&directory::own()) {
        if !is_named_for_living(&path) && is_refused(&path) {
            let inode = fs::symlink_metadata(&path).map(|found| found.ino());
            // What cannot be removed is found stale again.
            let _ = inode.and_then(|inode| finder::remove_stale(&path, inode));
        }
    }
}

/// `PID.sock`, `PID-COPY.sock`.
fn is_named_for_living(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let pid = stem.split('-').next().and_then(|pid| pid.parse::<u32>().ok());
    pid.and_then(|pid| fs::read(format!("/proc/{pid}/stat")).ok()).is_some_and(|stat| !has_ended(&stat))
}

/// Behind the name, which may have all kinds of bytes, is the state.
fn has_ended(stat: &[u8]) -> bool {
    let name_end = stat.iter().rposition(|byte| *byte == b')').unwrap_or(0);
    stat[name_end..].starts_with(b") Z")
}

/// The process may live all the same, where this one cannot see it: in a container that shares the directory.
fn is_refused(path: &Path) -> bool {
    let connect = || -> io::Result<()> {
        let socket = endpoint::socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        Ok(rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?)
    };
    connect().is_err_and(|error| error.raw_os_error() == Some(Errno::CONNREFUSED.raw_os_error()))
}
