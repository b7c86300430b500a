//! The reasons why no tree was mounted.

use std::io;
use std::path::PathBuf;

/// Why no tree was mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// There is no FUSE in this kernel or this container.
    #[error(
        "there is no /dev/fuse here, so parameters cannot be files: modprobe fuse, or pass /dev/fuse into the container"
    )]
    NoFuse,
    /// The directory cannot be made, found or read.
    #[error("cannot {what} {path}: {source}", path = path.display())]
    Directory {
        /// The action that failed.
        what: &'static str,
        /// The directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The directory contains files, which would be hidden.
    #[error("{path} is not empty, and what is in it would be hidden; name a directory that is empty or does not exist", path = .0.display())]
    NotEmpty(PathBuf),
    /// The parameters would hide the sockets of programs with probes.
    #[error(
        "programs with probes have their sockets in {}, which parameters at {} would hide; name another directory, such as {}",
        sockets.display(),
        at.display(),
        sockets.with_file_name("recorder").display()
    )]
    Hides {
        /// Where the sockets are.
        sockets: PathBuf,
        /// Where the parameters would be mounted.
        at: PathBuf,
    },
    /// Another tree is mounted there.
    #[error("the parameters of process {pid} are at {path} already; name another directory", path = path.display())]
    Taken {
        /// Where it is mounted.
        path: PathBuf,
        /// The process that it belongs to.
        pid: u32,
    },
    /// The kernel or fusermount3 refused to mount.
    #[error("cannot mount at {path}: {source}; without root, this needs fusermount3 (package fuse3) and the right to open /dev/fuse (mete doctor)", path = path.display())]
    Mount {
        /// Where it was to be mounted.
        path: PathBuf,
        /// The answer of the kernel or of fusermount3.
        source: io::Error,
    },
    /// No keeper can be started, so no process would take the tree away.
    #[error("cannot start the process that would take the parameters away if this one were killed: {0}")]
    NoKeeper(#[source] io::Error),
    /// Two files have the same name, or a file has the name of a directory.
    #[error("two parameters would be the file {0:?}: none may be named as a folder in which another one is")]
    SameName(String),
}
