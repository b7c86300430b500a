//! The library's descriptors, among those of the program.
//!
//! A program can close all its descriptors, as daemons do, and get the same number for a file of its own. So
//! this module notes the file for which a descriptor was opened, and each use asks first whether the number
//! still means that file. (The library does not notice a program that closes the descriptor between the
//! question and the use, because no system call does both.)

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

/// The file for which a descriptor was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileNote {
    number: RawFd,
    device: u64,
    inode: u64,
}

/// A descriptor that is closed when the value is dropped, if it is still the library's.
#[derive(Debug)]
pub(crate) struct Descriptor {
    note: FileNote,
}

/// The first number after those that every program takes for its input, output and messages.
const FIRST_FREE: RawFd = 3;

/// The same file, at a number that a program does not write to without having opened it. If a program is
/// started without standard output, the first file that is opened takes its number, and this library opens
/// its socket before the program opens anything.
pub(crate) fn above_standard(file: OwnedFd) -> rustix::io::Result<OwnedFd> {
    if file.as_raw_fd() >= FIRST_FREE {
        return Ok(file);
    }
    rustix::io::fcntl_dupfd_cloexec(&file, FIRST_FREE)
}

impl FileNote {
    fn of(file: BorrowedFd<'_>) -> io::Result<FileNote> {
        let found = rustix::fs::fstat(file)?;
        Ok(FileNote { number: file.as_raw_fd(), device: found.st_dev, inode: found.st_ino })
    }

    /// Whether the number still means the same file.
    fn is_ours(self) -> bool {
        // SAFETY: the number is only used for a question that may fail.
        let file = unsafe { BorrowedFd::borrow_raw(self.number) };
        FileNote::of(file).is_ok_and(|now| now == self)
    }

    /// Closes the descriptor, if it is still the library's. The caller is the last to use it.
    pub fn close(self) {
        if self.is_ours() {
            // SAFETY: the descriptor is the library's, and the caller is the last to use it.
            unsafe { libc::close(self.number) };
        }
    }
}

impl Descriptor {
    /// Takes over a descriptor that was just opened, and moves it [above the standard ones](above_standard).
    pub fn new(file: OwnedFd) -> io::Result<Descriptor> {
        let file = above_standard(file)?;
        let note = FileNote::of(std::os::fd::AsFd::as_fd(&file))?;
        // From here on the note closes it, and only if it is still the same file.
        let _ = file.into_raw_fd();
        Ok(Descriptor { note })
    }

    /// What the child of a fork closes.
    pub fn note(&self) -> FileNote {
        self.note
    }

    /// Whether the program has left the descriptor alone.
    pub fn is_ours(&self) -> bool {
        self.note.is_ours()
    }

    /// The descriptor, for a use right now. An error if it is no longer the library's.
    pub fn get(&self) -> io::Result<BorrowedFd<'_>> {
        if self.is_ours() { Ok(self.unchecked()) } else { Err(rustix::io::Errno::BADF.into()) }
    }

    /// The descriptor, for uses that do no harm to a file of the program.
    pub fn unchecked(&self) -> BorrowedFd<'_> {
        // SAFETY: this library keeps the descriptor open until `self` is dropped.
        unsafe { BorrowedFd::borrow_raw(self.note.number) }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        self.note.close();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    fn null() -> OwnedFd {
        File::open("/dev/null").unwrap().into()
    }

    /// A file whose inode no other file has.
    fn pipe() -> OwnedFd {
        rustix::pipe::pipe().unwrap().0
    }

    #[test]
    fn log_11_a_descriptor_that_became_another_file_is_neither_used_nor_closed() {
        let descriptor = Descriptor::new(pipe()).unwrap();
        let number = descriptor.get().unwrap().as_raw_fd();
        // What a program does that closes all files and opens its own. In one call, so that other tests do
        // not get the number in between.
        // SAFETY: `descriptor` allows for that.
        assert_eq!(unsafe { libc::dup2(null().as_raw_fd(), number) }, number);
        assert!(!descriptor.is_ours());
        assert_eq!(descriptor.get().unwrap_err().raw_os_error(), Some(libc::EBADF));
        drop(descriptor);
        // SAFETY: the descriptor was opened by `dup2` above, and nothing else owns it.
        let own = unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(number) };
        rustix::fs::fstat(own.as_fd()).expect("still open");
    }

    #[test]
    fn log_11_a_descriptor_that_was_left_alone_is_closed_at_its_end() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        drop(Descriptor::new(reader).unwrap());
        let unread = rustix::io::write(&writer, b"x").unwrap_err();
        assert_eq!(unread, rustix::io::Errno::PIPE);
    }
}
