//! What the files are, and what stands behind them.

use rustix::io::Errno;

/// Which way a file's value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It can be read and set.
    Both,
    /// It can be read.
    Read,
    /// It can be set: a request more than a value.
    Write,
}

impl Access {
    /// Permissions of the file: the owner's only.
    pub(crate) fn mode(self) -> u16 {
        match self {
            Access::Both => 0o600,
            Access::Read => 0o400,
            Access::Write => 0o200,
        }
    }

    pub(crate) fn may_read(self) -> bool {
        self != Access::Write
    }

    pub(crate) fn may_write(self) -> bool {
        self != Access::Read
    }
}

/// A file of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in the tree: `enable`, `benchmarks/SCHEDIN`.
    pub path: String,
    /// Which way it goes.
    pub access: Access,
}

impl File {
    /// A file.
    pub fn new(path: impl Into<String>, access: Access) -> File {
        File { path: path.into(), access }
    }
}

/// Why a value is not read or set. The system call fails with the number; the sentence is for whoever keeps it, since
/// a system call has no room for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the system call fails with.
    pub errno: Errno,
    /// What is wrong, for people.
    pub why: String,
}

impl Refusal {
    /// The value makes no sense there: EINVAL.
    pub fn value(why: impl Into<String>) -> Refusal {
        Refusal { errno: Errno::INVAL, why: why.into() }
    }

    /// What is asked cannot be done now: EBUSY.
    pub fn busy(why: impl Into<String>) -> Refusal {
        Refusal { errno: Errno::BUSY, why: why.into() }
    }

    /// It was tried and failed: EIO.
    pub fn failed(why: impl Into<String>) -> Refusal {
        Refusal { errno: Errno::IO, why: why.into() }
    }

    /// The program is about to end: ESHUTDOWN.
    pub fn over() -> Refusal {
        Refusal { errno: Errno::SHUTDOWN, why: "the program is ending".into() }
    }
}

/// What stands behind the files. Calls come from the session's thread, one at a time; the process that reads or
/// writes waits as long as they take.
pub trait Store: Send + Sync + 'static {
    /// The text of a file, with its line break.
    ///
    /// # Errors
    ///
    /// [`Refusal`], with which the reader's system call fails.
    fn read(&self, path: &str) -> Result<String, Refusal>;

    /// Sets a value: what was written, without surrounding white space.
    ///
    /// # Errors
    ///
    /// [`Refusal`], with which the writer's system call fails; nothing has changed then.
    fn write(&self, path: &str, value: &str) -> Result<(), Refusal>;
}
