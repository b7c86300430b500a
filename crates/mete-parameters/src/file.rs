//! The files of a tree, and the values behind them.

use rustix::io::Errno;

/// Whether a file's value can be read, set, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It can be read and set.
    Both,
    /// It can be read.
    Read,
    /// It can be set. It is more a request than a value.
    Write,
}

impl Access {
    /// The permissions of the file, which only its owner has.
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
    /// Whether it can be read, set, or both.
    pub access: Access,
}

impl File {
    /// A file with this path.
    pub fn new(path: impl Into<String>, access: Access) -> File {
        File { path: path.into(), access }
    }
}

/// Why a value is not read or set. The system call fails with the number. The sentence is for a program that
/// keeps a record of it, because a system call has no room for a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The error number of the system call.
    pub errno: Errno,
    /// What is wrong, for people.
    pub why: String,
}

impl Refusal {
    /// The file cannot have this value: EINVAL.
    pub fn value(why: impl Into<String>) -> Refusal {
        Refusal { errno: Errno::INVAL, why: why.into() }
    }

    /// The request cannot be carried out now: EBUSY.
    pub fn busy(why: impl Into<String>) -> Refusal {
        Refusal { errno: Errno::BUSY, why: why.into() }
    }

    /// The request was tried and failed: EIO.
    pub fn failed(why: impl Into<String>) -> Refusal {
        Refusal { errno: Errno::IO, why: why.into() }
    }

    /// The program is about to end: ESHUTDOWN.
    pub fn over() -> Refusal {
        Refusal { errno: Errno::SHUTDOWN, why: "the program is ending".into() }
    }
}

/// The values behind the files. Calls come from the session's thread, one at a time. The process that reads
/// or writes a file waits as long as a call takes.
pub trait Store: Send + Sync + 'static {
    /// The text of a file, including its line break.
    ///
    /// # Errors
    ///
    /// [`Refusal`], with which the reader's system call fails.
    fn read(&self, path: &str) -> Result<String, Refusal>;

    /// Sets a value to what was written, without surrounding white space.
    ///
    /// # Errors
    ///
    /// [`Refusal`], with which the writer's system call fails. Nothing has changed then.
    fn write(&self, path: &str, value: &str) -> Result<(), Refusal>;
}
