//! How a recording is made.

use std::path::PathBuf;

use crate::block;
use crate::description::ClockSource;
use crate::directory::FormerTrace;
use crate::layout;

/// How a recording is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where records go.
    pub keep: Keep,
    /// What happens to a trace that is already where this one is to be.
    pub former: FormerTrace,
    /// Bytes of a block: a multiple of 4096, 8192 to 16 Mi.
    pub block_bytes: u32,
    /// The clock that producers stamp records with.
    pub clock: ClockSource,
    /// The low-water mark that the buffers were made with, for the description.
    pub low_water_percent: u8,
    /// Whether flush threads take a real-time priority if they may (KLogger §5.2).
    pub realtime: bool,
    /// Names of the accounting domains by their numbers, for the description.
    pub domains: Vec<String>,
    /// Names of the events that are off at first, for the description.
    pub off_at_first: Vec<String>,
    /// Numbers of events whose occurrences are counted for [`Recorder::seen`](crate::Recorder::seen). When
    /// one occurs, a flight recorder holds what it has until it is dumped, and the same amount again of what
    /// follows. Later records are not kept.
    pub watched: Vec<u16>,
}

/// Where records go.
#[derive(Clone, Debug)]
pub enum Keep {
    /// Into this directory, as they come. The directory is made, for its owner alone, or must be empty.
    Directory(PathBuf),
    /// Into memory: the newest records, up to this number of bytes, shared out evenly among the processors.
    Newest(u64),
}

impl Options {
    /// The defaults, into a directory.
    pub fn directory(path: impl Into<PathBuf>) -> Options {
        Options::keep(Keep::Directory(path.into()))
    }

    /// The defaults of a flight recorder.
    pub fn flight(bytes: u64) -> Options {
        Options::keep(Keep::Newest(bytes))
    }

    fn keep(keep: Keep) -> Options {
        Options {
            keep,
            former: FormerTrace::Stays,
            block_bytes: block::DEFAULT_BLOCK_BYTES,
            clock: ClockSource::Counter,
            low_water_percent: layout::DEFAULT_LOW_WATER_PERCENT,
            realtime: true,
            domains: Vec::new(),
            off_at_first: Vec::new(),
            watched: Vec::new(),
        }
    }

    /// Whether records go into a directory as they come. If not, this is a flight recorder.
    pub(super) fn keeps_all(&self) -> bool {
        matches!(self.keep, Keep::Directory(_))
    }
}
