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

/// What components know to have missed, beyond the rows that they wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// Runs of log handlers that the kernel left out, with the rows that they would have written.
    pub runs: u64,
    /// Address spaces that are missing from the sums of memory.
    pub spaces: u64,
    /// Context switches that the kernel did not report. No row is lost by them: service time is made
    /// up for, and counters are charged to whoever is seen next.
    pub switches: u64,
}

impl Missed {
    /// Both together.
    pub fn plus(self, other: Missed) -> Missed {
        self.with(other, u64::saturating_add)
    }

    /// What was missed since `before`; `None` if either is not known.
    pub fn since(now: Option<Missed>, before: Option<Missed>) -> Option<Missed> {
        Some(now?.with(before?, u64::saturating_sub))
    }

    fn with(self, other: Missed, of: fn(u64, u64) -> u64) -> Missed {
        Missed {
            runs: of(self.runs, other.runs),
            spaces: of(self.spaces, other.spaces),
            switches: of(self.switches, other.switches),
        }
    }

    /// Nothing where nothing was missed.
    fn lines(self) -> impl Iterator<Item = String> {
        let Missed { runs, spaces, switches } = self;
        let lines = [
            (runs, format!("the kernel left out {runs} runs of log handlers")),
            (spaces, format!("{spaces} address spaces are missing from the sums of memory")),
            (
                switches,
                format!(
                    "{switches} context switches went unreported: service time is made up for, counters are not"
                ),
            ),
        ];
        lines.into_iter().filter_map(|(count, line)| (count > 0).then_some(line))
    }
}

/// The statement for an interval: one entry for each file and processor that logged anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// When the interval began, by the monotonic clock.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// The files.
    pub files: Vec<FileCount>,
    /// What never became a row; `None` if that cannot be found out.
    pub missed: Option<Missed>,
}

impl Completeness {
    /// Whether everything became a row, and every row of every file was read.
    pub fn is_complete(&self) -> bool {
        let has_all = self.missed.is_some_and(|missed| missed.runs == 0 && missed.spaces == 0);
        has_all && self.files.iter().all(FileCount::is_complete)
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
            write!(f, "complete: all {rows} rows were read")?;
        } else {
            write!(f, "incomplete: {rows} rows were read, {lost} were lost")?;
        }
        for file in self.files.iter().filter(|file| !file.is_complete()) {
            let FileCount { source, file, processor, overwritten, refused, garbled, .. } = file;
            write!(
                f,
                "\n  {source}, {file}, processor {processor}: {overwritten} overwritten, {refused} refused, \
                 {garbled} polls garbled"
            )?;
        }
        match self.missed {
            Some(missed) => missed.lines().try_for_each(|line| write!(f, "\n  {line}")),
            None => f.write_str("\n  what the kernel has missed cannot be found out"),
        }
    }
}
