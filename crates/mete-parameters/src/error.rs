//! Why there is no tree.

use std::io;
use std::path::PathBuf;

/// Why no tree was mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The kernel has no FUSE, or this container does not.
    #[error(
        "there is no /dev/fuse here, so parameters cannot be files: modprobe fuse, or pass /dev/fuse into the container"
    )]
    NoFuse,
    /// The directory cannot be had.
    #[error("cannot {what} {path}: {source}", path = path.display())]
    Directory {
        /// What was tried.
        what: &'static str,
        /// On which directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Files that are there would be hidden.
    #[error("{path} is not empty, and what is in it would be hidden; name a directory that is empty or does not exist", path = .0.display())]
    NotEmpty(PathBuf),
    /// Another tree is there.
    #[error("the parameters of process {pid} are at {path} already; name another directory", path = path.display())]
    Taken {
        /// Where.
        path: PathBuf,
        /// Whose.
        pid: u32,
    },
    /// The kernel or fusermount3 refused.
    #[error("cannot mount at {path}: {source}; without root, this needs fusermount3 (package fuse3)", path = path.display())]
    Mount {
        /// Where.
        path: PathBuf,
        /// The answer.
        source: io::Error,
    },
    /// Nobody would take the tree away.
    #[error("cannot start the process that would take the parameters away if this one were killed: {source}")]
    NoKeeper {
        /// What came instead.
        source: io::Error,
    },
    /// Two files of one name, or one that is a directory.
    #[error("two parameters would be the file {0:?}")]
    SameName(String),
}
