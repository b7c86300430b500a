//! Loss is never silent (design decision D10): for each log file on each processor, what was read
//! and what was not.

use std::fmt;

use mete_log::Poll;
use serde::Serialize;

/// One log file on one processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileCount {
    /// The component.
    pub source: String,
    /// The file.
    pub file: String,
    /// The processor.
    pub processor: usize,
    /// Rows that were read.
    pub rows: u64,
    /// Rows that were overwritten before they could be read.
    pub overwritten: u64,
    /// Rows that the producer had to refuse.
    pub refused: u64,
    /// Polls in which the producer's side made no sense.
    pub garbled: u64,
}

impl FileCount {
    pub(super) fn add(&mut self, poll: Poll) {
        self.rows = self.rows.saturating_add(poll.rows);
        self.overwritten = self.overwritten.saturating_add(poll.overwritten);
        self.refused = self.refused.saturating_add(poll.refused);
    }

    /// Whether every row was read.
    pub fn is_complete(&self) -> bool {
        self.overwritten == 0 && self.refused == 0 && self.garbled == 0
    }
}

/// The statement for an interval: one entry for each file and processor that logged anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// When the interval began, by the monotonic clock.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// The files.
    pub files: Vec<FileCount>,
}

impl Completeness {
    /// Whether every row of every file was read.
    pub fn is_complete(&self) -> bool {
        self.files.iter().all(FileCount::is_complete)
    }

    fn sum(&self, of: impl Fn(&FileCount) -> u64) -> u64 {
        self.files.iter().map(of).fold(0, u64::saturating_add)
    }
}

impl fmt::Display for Completeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.sum(|file| file.rows);
        let lost = self.sum(|file| file.overwritten).saturating_add(self.sum(|file| file.refused));
        if self.is_complete() {
            return write!(f, "complete: all {rows} rows were read");
        }
        write!(f, "incomplete: {rows} rows were read, {lost} were lost")?;
        for file in self.files.iter().filter(|file| !file.is_complete()) {
            let FileCount { source, file, processor, overwritten, refused, garbled, .. } = file;
            write!(
                f,
                "\n  {source}, {file}, processor {processor}: {overwritten} overwritten, {refused} refused, \
                 {garbled} polls garbled"
            )?;
        }
        Ok(())
    }
}
