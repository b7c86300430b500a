//! Memory that is there: for a thread that others wait for.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};

/// The memory of this process, which stays where it is until this is dropped: to wait for a page is to wait for tasks that may wait for
/// this process.
///
/// Locked pages are not read from a disk. But the kernel collapses small pages to huge ones, in a thread that
/// is scheduled like any task and meanwhile keeps others from the process's memory. So it is asked not to.
#[derive(Debug)]
pub struct LockedMemory {
    had_no_huge_pages: bool,
}

impl LockedMemory {
    /// Locks what there is, and what will be there.
    ///
    /// # Errors
    ///
    /// The system's answer: without privileges, little memory may be locked (`RLIMIT_MEMLOCK`).
    pub fn new() -> io::Result<LockedMemory> {
        // A kernel without huge pages does not know either call.
        let had_no_huge_pages = transparent_huge_pages_are_disabled().unwrap_or(true);
        if !had_no_huge_pages {
            disable_transparent_huge_pages(true)?;
        }
        let locked = LockedMemory { had_no_huge_pages };
        locked.be_there()?;
        Ok(locked)
    }

    /// Has all pages be this process's own again, after it has started another one: until then the first write to each waits for the
    /// kernel.
    ///
    /// # Errors
    ///
    /// As [`LockedMemory::new`].
    pub fn be_there(&self) -> io::Result<()> {
        Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        // Neither can fail.
        let _ = munlockall();
        if !self.had_no_huge_pages {
            let _ = disable_transparent_huge_pages(false);
        }
    }
}
