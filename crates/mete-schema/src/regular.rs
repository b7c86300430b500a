//! Opens what should be a regular file and may be anything: its name is in somebody's schema or came by a script, or
//! it is in a directory that is somebody else's, such as a trace.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{FileType, OFlags};

use crate::folder::Entry;

/// Opens a regular file to be read. It is looked at before it is opened, because opening may do something: a tape is
/// rewound, a watchdog begins to count, a pipe waits for a writer.
///
/// # Errors
///
/// The file system's answer; [`io::ErrorKind::InvalidInput`] if it is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let entry = Entry::at(path)?;
    if entry.kind() != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    // Means nothing of a regular file, unless another process holds a lease of it.
    entry.open(OFlags::RDONLY | OFlags::NONBLOCK)
}

/// All of a regular file, or its first `most` bytes and one more. Files of the kernel do not always say their size.
///
/// # Errors
///
/// As [`open`], and the file system's answer to reading.
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
    fn what_is_no_regular_file_is_not_opened() {
        let path = std::env::temp_dir().join(format!("mete-regular-{}", std::process::id()));
        mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watch, &path, inotify::WatchFlags::OPEN).unwrap();
        let refused = open(&path);
        let nothing = rustix::io::read(&watch, &mut [0; 1024]).err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(nothing, Some(rustix::io::Errno::AGAIN), "nothing has noticed");
    }
}
