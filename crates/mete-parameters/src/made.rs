//! Directories that were made for a tree: how to remove them, and no other.
//!
//! A directory is known by its descriptor. It is not looked up by its path again, because another user may
//! have put a link there.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};

/// Opens a directory without access to what is in it.
pub(crate) const FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The present path of a directory.
pub(crate) fn path_of(place: impl AsFd) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", place.as_fd().as_raw_fd()))
}

/// Removes a directory and those above it that were made with it (`made` in all), as far as they are empty.
/// Each directory is found from the one below it, and is removed only if its name still leads to it.
pub(crate) fn remove(place: OwnedFd, made: usize) {
    let mut place = place;
    for _ in 0..made {
        // Another process may have removed this directory, and may have been killed before it came to the
        // next one.
        match remove_one(place.as_fd()).or_else(|error| above_removed(place.as_fd()).ok_or(error)) {
            Ok(above) => place = above,
            // The directory is in use.
            Err(_) => return,
        }
    }
}

/// Removes as [`remove`] does, as soon as nothing is mounted on the directory. Removes nothing if that is not
/// before `is_over`.
pub(crate) fn remove_when_free(place: &OwnedFd, made: usize, is_over: &AtomicBool) {
    const PAUSE: Duration = Duration::from_micros(50);
    while made > 0 && !is_over.load(Ordering::Acquire) {
        if let Ok(above) = remove_one(place.as_fd()) {
            return remove(above, made - 1);
        }
        thread::sleep(PAUSE);
    }
}

/// Removes one directory, and returns the directory that it was in.
fn remove_one(place: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let path = path_of(place)?;
    let name = path.file_name().ok_or(io::ErrorKind::NotFound)?;
    let above = rustix::fs::openat(place, "..", FLAGS, Mode::empty())?;
    let there = rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    // By this name, there may be another directory now, which must stay.
    if identity(&there) != identity(&rustix::fs::fstat(place)?) {
        return Err(io::ErrorKind::NotFound.into());
    }
    rustix::fs::unlinkat(&above, name, AtFlags::REMOVEDIR)?;
    Ok(above)
}

/// The directory in which a directory was that has been removed.
fn above_removed(place: BorrowedFd<'_>) -> Option<OwnedFd> {
    // A removed directory has no links left, but still knows the directory above it.
    let is_removed = rustix::fs::fstat(place).is_ok_and(|found| found.st_nlink == 0);
    is_removed.then(|| rustix::fs::openat(place, "..", FLAGS, Mode::empty()).ok()).flatten()
}

fn identity(found: &Stat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}
