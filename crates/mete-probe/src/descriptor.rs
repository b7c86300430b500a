//! Descriptors of ours among the program's.
//!
//! A program may close every descriptor there is, as daemons do, and get the same number for a file
//! of its own. So it is noted which file a descriptor was opened for, and each use asks first
//! whether it is still that one. (A program that does so between the question and the use is not
//! noticed: no system call takes both.)

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

/// Which file a descriptor was opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    number: RawFd,
    device: u64,
    inode: u64,
}

/// A descriptor that is closed when dropped, if it still is ours.
#[derive(Debug)]
pub(crate) struct Descriptor {
    note: Note,
}

/// The number below which descriptors are those that every program takes for its input, output and messages.
const FIRST_FREE: RawFd = 3;

/// The same file, not at a number that a program writes to unseen: where it was started without standard output, what
/// is opened first would take its place, and this library opens its socket before the program opens anything.
pub(crate) fn above_standard(file: OwnedFd) -> rustix::io::Result<OwnedFd> {
    if file.as_raw_fd() >= FIRST_FREE {
        return Ok(file);
    }
    rustix::io::fcntl_dupfd_cloexec(&file, FIRST_FREE)
}

impl Note {
    fn of(file: BorrowedFd<'_>) -> io::Result<Note> {
        let found = rustix::fs::fstat(file)?;
        Ok(Note { number: file.as_raw_fd(), device: found.st_dev, inode: found.st_ino })
    }

    /// Whether the number still stands for the same file.
    fn is_ours(self) -> bool {
        // SAFETY: only for a question that may fail.
        let file = unsafe { BorrowedFd::borrow_raw(self.number) };
        Note::of(file).is_ok_and(|now| now == self)
    }

    /// Closes it, if it still is ours. Nobody uses it any more.
    pub fn close(self) {
        if self.is_ours() {
            // SAFETY: ours, and the caller is the last to use it.
            unsafe { libc::close(self.number) };
        }
    }
}

impl Descriptor {
    /// Takes over a descriptor that was just opened, [above the standard ones](above_standard).
    pub fn new(file: OwnedFd) -> io::Result<Descriptor> {
        let file = above_standard(file)?;
        let note = Note::of(std::os::fd::AsFd::as_fd(&file))?;
        let _ = file.into_raw_fd();
        Ok(Descriptor { note })
    }

    /// What to close in the child of a fork.
    pub fn note(&self) -> Note {
        self.note
    }

    /// Whether the program has left it alone.
    pub fn is_ours(&self) -> bool {
        self.note.is_ours()
    }

    /// For a use right now; an error if it is ours no longer.
    pub fn get(&self) -> io::Result<BorrowedFd<'_>> {
        if self.is_ours() { Ok(self.unchecked()) } else { Err(rustix::io::Errno::BADF.into()) }
    }

    /// For uses that do no harm to a file of the program's.
    pub fn unchecked(&self) -> BorrowedFd<'_> {
        // SAFETY: open until `self` is dropped, as far as it depends on this library.
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

    /// A file that no other has the inode of.
    fn pipe() -> OwnedFd {
        rustix::pipe::pipe().unwrap().0
    }

    #[test]
    fn log_11_a_descriptor_that_became_another_file_is_neither_used_nor_closed() {
        let descriptor = Descriptor::new(pipe()).unwrap();
        let number = descriptor.get().unwrap().as_raw_fd();
        // What a program does that closes all and opens its own; at once, for the sake of other tests.
        // SAFETY: `descriptor` allows for that.
        assert_eq!(unsafe { libc::dup2(null().as_raw_fd(), number) }, number);
        assert!(!descriptor.is_ours());
        assert_eq!(descriptor.get().unwrap_err().raw_os_error(), Some(libc::EBADF));
        drop(descriptor);
        // SAFETY: opened by `dup2` above, and nobody else's.
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
