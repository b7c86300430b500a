//! Opens files that should be regular files but may be of any kind: the name comes from a schema or a script,
//! or the file lies in a directory of another user, such as a trace.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{FileType, OFlags};

use crate::folder::FolderEntry;

/// Opens a regular file for reading. Its kind is checked before it is opened, because opening alone can have
/// an effect: it rewinds a tape, starts a watchdog, or waits for the writer of a pipe.
///
/// # Errors
///
/// The file system's error; [`io::ErrorKind::InvalidInput`] if it is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let entry = FolderEntry::at(path)?;
    if entry.kind() != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    // `NONBLOCK` has no effect on a regular file, unless another process holds a lease on it.
    entry.open(OFlags::RDONLY | OFlags::NONBLOCK)
}

/// Reads a regular file, but at most `most + 1` bytes of it, so that a caller sees that a file is larger than
/// `most`. The file is not asked for its size, because files of the kernel do not always report it.
///
/// # Errors
///
/// As [`open`], and the file system's error from reading.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, inotify, mkfifoat};

    use super::*;

    #[test]
    fn a_file_that_is_not_regular_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watch, &path, inotify::WatchFlags::OPEN).unwrap();
        let refused = open(&path);
        let nothing = rustix::io::read(&watch, &mut [0; 1024]).err();
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(nothing, Some(rustix::io::Errno::AGAIN), "the file was opened");
    }
}
