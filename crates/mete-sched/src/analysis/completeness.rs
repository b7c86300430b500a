//! Loss is never silent (design decision D10). The statement lists, for each log file on each processor, what
//! was read and what was not.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use mete_log::{Poll, ReadError};
use serde::Serialize;

use crate::missed_activity::MissedActivity;

/// The counts of one log file on one processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileCount {
    /// The component.
    pub source: String,
    /// The file.
    pub file: String,
    /// The processor.
    pub processor: usize,
    /// Rows that were read. For a file of totals: all rows that were written, because the newest row contains
    /// everything.
    pub rows: u64,
    /// Rows that were overwritten before they could be read.
    pub overwritten: u64,
    /// Rows that the producer could not write.
    pub refused: u64,
    /// Polls at which the producer's part of the file made no sense.
    pub garbled: u64,
    /// Those of the rows that were read that do not count, because they name domains that their component may
    /// not speak for.
    pub disregarded: u64,
}

impl FileCount {
    pub(super) fn take(&mut self, polled: Result<Poll, ReadError>) {
        match polled {
            Ok(poll) => {
                self.rows = self.rows.saturating_add(poll.rows);
                self.overwritten = self.overwritten.saturating_add(poll.overwritten);
                self.refused = self.refused.saturating_add(poll.refused);
            }
            Err(_) => self.garbled += 1,
        }
    }

    /// The same file with each count made from both.
    fn with(&self, other: &FileCount, of: fn(u64, u64) -> u64) -> FileCount {
        FileCount {
            rows: of(self.rows, other.rows),
            overwritten: of(self.overwritten, other.overwritten),
            refused: of(self.refused, other.refused),
            garbled: of(self.garbled, other.garbled),
            disregarded: of(self.disregarded, other.disregarded),
            ..self.clone()
        }
    }

    fn is_same_file(&self, other: &FileCount) -> bool {
        (&self.source, &self.file, self.processor) == (&other.source, &other.file, other.processor)
    }

    fn has_anything(&self) -> bool {
        self.rows > 0 || !self.is_complete()
    }

    /// Whether every row was read.
    pub fn is_complete(&self) -> bool {
        self.overwritten == 0 && self.refused == 0 && self.garbled == 0
    }
}

/// The statement for an interval, with one entry for each file and processor that logged anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// When the interval began, by the monotonic clock.
    pub from_ns: u64,
    /// When the interval ended.
    pub to_ns: u64,
    /// The files.
    pub files: Vec<FileCount>,
    /// What never became a row; `None` if that cannot be found out.
    pub missed: Option<MissedActivity>,
}

impl Completeness {
    /// Whether everything became a row, and every row of every file was read.
    pub fn is_complete(&self) -> bool {
        // Unreported switches lose no row, so they do not count here.
        let has_all =
            self.missed.is_some_and(|missed| missed.runs == 0 && missed.spaces == 0 && missed.late == 0);
        has_all && self.files.iter().all(FileCount::is_complete)
    }

    /// The statement of the time since an earlier statement: without what came before.
    pub fn since(&self, before: &Completeness) -> Completeness {
        let files = self.files.iter().map(|file| {
            let earlier = before.files.iter().find(|earlier| earlier.is_same_file(file));
            earlier.map_or_else(|| file.clone(), |earlier| file.with(earlier, u64::saturating_sub))
        });
        Completeness {
            from_ns: before.to_ns,
            to_ns: self.to_ns,
            files: files.collect(),
            missed: MissedActivity::since(self.missed, before.missed),
        }
    }

    /// The components with rows that do not count, and the number of such rows.
    fn disregarded(&self) -> BTreeMap<&str, u64> {
        let mut found: BTreeMap<&str, u64> = BTreeMap::new();
        for file in self.files.iter().filter(|file| file.disregarded > 0) {
            let rows = found.entry(&file.source).or_default();
            *rows = rows.saturating_add(file.disregarded);
        }
        found
    }

    fn sum(&self, of: impl Fn(&FileCount) -> u64) -> u64 {
        self.files.iter().map(of).fold(0, u64::saturating_add)
    }
}

/// One count for each file that has logged or lost anything.
pub(super) fn by_file(counts: impl IntoIterator<Item = FileCount>) -> Vec<FileCount> {
    // `places` says where in `files` a file's count is: the order of the first appearances is kept.
    let (mut files, mut places) = (Vec::<FileCount>::new(), BTreeMap::new());
    for count in counts.into_iter().filter(FileCount::has_anything) {
        let file = (count.source.clone(), count.file.clone(), count.processor);
        match places.entry(file) {
            Entry::Vacant(place) => {
                place.insert(files.len());
                files.push(count);
            }
            // Another reading of the same file: a component that was let go may have been taken again.
            Entry::Occupied(place) => {
                let known = &mut files[*place.get()];
                *known = known.with(&count, u64::saturating_add);
            }
        }
    }
    files
}

impl fmt::Display for Completeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.sum(|file| file.rows);
        let lost = self.sum(|file| file.overwritten).saturating_add(self.sum(|file| file.refused));
        if self.is_complete() && rows == 0 {
            f.write_str("nothing was read: no row was logged")?;
        } else if self.is_complete() {
            write!(f, "complete: {}", several(rows, "the one row was read", "all # rows were read"))?;
        } else {
            let lost = several(lost, "1 was lost", "# were lost");
            write!(f, "incomplete: {}, {lost}", several(rows, "1 row was read", "# rows were read"))?;
        }
        for file in self.files.iter().filter(|file| !file.is_complete()) {
            let FileCount { source, file, processor, overwritten, refused, garbled, .. } = file;
            write!(
                f,
                "\n  {source}, {file}, processor {processor}: {overwritten} overwritten, {refused} refused, {}",
                several(*garbled, "1 poll garbled", "# polls garbled")
            )?;
        }
        for (source, rows) in self.disregarded() {
            let rows = several(rows, "1 row does not count", "# rows do not count");
            write!(f, "\n  {source}: {rows}: it may not speak for the domains that they name")?;
        }
        match self.missed {
            Some(missed) => missed_lines(missed).try_for_each(|line| write!(f, "\n  {line}")),
            None => f.write_str("\n  what the kernel has missed cannot be found out"),
        }
    }
}

/// One line for each kind of what was missed; no line where nothing was missed.
fn missed_lines(missed: MissedActivity) -> impl Iterator<Item = String> {
    let MissedActivity { runs, spaces, switches, late, late_ns } = missed;
    let left_out = several(runs, "a run of a log handler", "# runs of log handlers");
    let missing = several(spaces, "1 address space is", "# address spaces are");
    let unreported = several(switches, "1 context switch", "# context switches");
    let (bound, ms) = (several(late, "1 process was", "# processes were"), late_ns.div_ceil(1_000_000));
    let lines = [
        (runs, format!("the kernel left out {left_out}")),
        (spaces, format!("{missing} missing from the sums of memory")),
        (
            switches,
            unreported
                + " went unreported: processor time is corrected for them, counts of performance counters are not",
        ),
        (late, format!("{bound} bound late: up to {ms} ms of processor time stand under another domain")),
    ];
    lines.into_iter().filter_map(|(count, line)| (count > 0).then_some(line))
}

/// The text for one, or the text for several with the number in place of `#`.
fn several(number: u64, one: &str, many: &str) -> String {
    if number == 1 { one.to_owned() } else { many.replace('#', &number.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one() {
        let file = FileCount { file: "x".into(), rows: 1, ..FileCount::default() };
        let missed = Some(MissedActivity::default());
        let mut statement = Completeness { from_ns: 0, to_ns: 0, files: vec![file], missed };
        assert_eq!(statement.to_string(), "complete: the one row was read");
        statement.files[0].overwritten = 1;
        assert!(statement.to_string().starts_with("incomplete: 1 row was read, 1 was lost\n"), "{statement}");
        statement.files[0].rows = 2;
        assert!(
            statement.to_string().starts_with("incomplete: 2 rows were read, 1 was lost\n"),
            "{statement}"
        );
    }

    #[test]
    fn log_10_whatever_is_missing_from_the_numbers_is_not_complete() {
        let nothing = MissedActivity::default();
        let statement = |missed| Completeness { from_ns: 0, to_ns: 0, files: Vec::new(), missed };
        assert!(statement(Some(nothing)).is_complete());
        // Service time is made up for unreported switches.
        assert!(statement(Some(MissedActivity { switches: 1, ..nothing })).is_complete());
        let missing = [
            MissedActivity { runs: 1, ..nothing },
            MissedActivity { spaces: 1, ..nothing },
            MissedActivity { late: 1, ..nothing },
        ];
        for missed in missing.map(Some).into_iter().chain([None]) {
            assert!(!statement(missed).is_complete(), "{missed:?}");
            assert!(
                statement(missed).to_string().contains('\n'),
                "what it is has a line of its own: {missed:?}"
            );
        }
    }
}
