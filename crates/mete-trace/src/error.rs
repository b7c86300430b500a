//! Why nothing is recorded, or why a recording has no proper end.

use std::io;
use std::path::PathBuf;

use crate::description::{DescriptionError, DescriptionFileError};

/// Why nothing is recorded, or why a recording has no proper end.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Blocks cannot have this size.
    #[error("blocks of {0} bytes: must be a multiple of 4096 from 8192 to 16777216")]
    BlockSize(u32),
    /// The description of the events is refused.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// The description file could not be written.
    #[error(transparent)]
    DescriptionFile(#[from] DescriptionFileError),
    /// The directory or a file in it could not be made.
    #[error("cannot {what} {path}: {source}", path = path.display())]
    Create {
        /// What was tried.
        what: &'static str,
        /// The directory or file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is a file already where there should be a directory.
    #[error("{path} is a file; a trace needs a directory of its own", path = .0.display())]
    NotDirectory(PathBuf),
    /// The directory is not empty.
    #[error("{path} is not empty; a trace needs a directory of its own", path = .0.display())]
    NotEmpty(PathBuf),
    /// The directory has a trace already.
    #[error("there is a trace in {path} already", path = .0.display())]
    TraceThere(PathBuf),
    /// A trace would be replaced, but the directory has something else in it, too.
    #[error("{path} is not replaced: {name} in it is no part of a trace", path = path.display(), name = name.display())]
    NotReplaced {
        /// The directory.
        path: PathBuf,
        /// What is in it.
        name: PathBuf,
    },
    /// Another recorder writes into the directory.
    #[error("another recorder is at work in {path}; a trace needs a directory of its own", path = .0.display())]
    InUse(PathBuf),
    /// The system gave no thread or no random number.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A flush thread did not answer a request.
    #[error("the flush thread of processor {processor} has not answered for {seconds} s; is its disk stuck?")]
    NoAnswer {
        /// The thread's processor.
        processor: usize,
        /// How long the recorder waited.
        seconds: u64,
    },
    /// Recorded events cannot be written.
    #[error("processor {processor}'s blocks cannot be written: {why}")]
    Write {
        /// The processor.
        processor: usize,
        /// The system's answer.
        why: String,
    },
    /// A dump was asked of a recorder that writes all the time.
    #[error("this recorder writes into its directory as it goes; only a flight recorder can be dumped")]
    NotFlight,
}
