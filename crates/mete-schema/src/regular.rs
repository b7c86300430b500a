//! Opens what should be a regular file and may be anything: its name is in somebody's schema or came by a script, or
//! it is in a directory that is somebody else's, such as a trace.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file to be read. Waits for nobody: a pipe would make a reader wait for whoever writes into it.
///
/// # Errors
///
/// The file system's answer; [`io::ErrorKind::InvalidInput`] if it is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    // Means nothing of a regular file.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
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
