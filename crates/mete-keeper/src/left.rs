//! The files that say what must be undone, as the next start of the program finds them. No other user can
//! have written what is found here.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The files with this extension in a directory. There are none if another user could have put files into the
/// directory.
pub fn files_left(directory: &Path, extension: &str) -> Vec<PathBuf> {
    // The directory itself and not what a link points to: another user may have made the link.
    let is_own = fs::symlink_metadata(directory)
        .is_ok_and(|found| found.is_dir() && found.uid() == own_user() && found.mode() & 0o022 == 0);
    let entries = is_own.then(|| fs::read_dir(directory)).into_iter().flatten().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension() == Some(OsStr::new(extension))).collect()
}

/// Opens one of these files for this kind of access. `None` if it is no regular file of this user.
///
/// # Errors
///
/// The kernel's answer.
pub fn open_left(path: &Path, access: OFlags) -> io::Result<Option<File>> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    Ok((found.is_file() && found.uid() == own_user()).then_some(file))
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
