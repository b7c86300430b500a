//! What has become of a recording.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mete_trace::{Account, RecordError, Trace};
use serde::Serialize;

use crate::error::RecordingError;

/// What has become of a recording: the numbers that `mete record --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    kind: &'static str,
    /// The trace's directory.
    pub trace: String,
    /// How long it recorded, in seconds.
    pub passed_s: f64,
    /// Records in the trace.
    pub records: u64,
    /// Events that are not in it although they occurred.
    pub lost: u64,
    /// Lost events that had found room in memory and could not be written.
    pub unwritten: u64,
    /// How often the kernel left out one of its programs.
    pub missed_runs: u64,
    /// The size of the trace's files.
    pub bytes: u64,
    /// The same by processor.
    pub processors: Vec<Account>,
    /// What was wrong in buffers that a program garbled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub garbled: Vec<String>,
    /// Where a flight recorder's memory was written, in order; the last one is `trace`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dumps: Vec<String>,
}

/// How a recording has ended.
#[derive(Debug)]
pub struct Ended {
    /// What has become of it, also where the end of it could not be written.
    pub summary: Summary,
    /// Why the end of the trace could not be written, if it could not.
    pub stopped: Result<(), RecordError>,
}

impl Summary {
    /// Of a trace with these accounts.
    pub(crate) fn of(directory: &Path, processors: Vec<Account>) -> Summary {
        let sum = |of: fn(&Account) -> u64| processors.iter().map(of).sum();
        Summary {
            kind: "recorded",
            trace: directory.display().to_string(),
            passed_s: 0.0,
            records: sum(|account| account.records),
            lost: sum(|account| account.lost),
            unwritten: sum(|account| account.unwritten),
            missed_runs: 0,
            bytes: written_bytes(directory),
            processors,
            garbled: Vec::new(),
            dumps: Vec::new(),
        }
    }

    /// Of what a flight recorder has written; the numbers are those of the last dump.
    pub(crate) fn of_dumps(dumps: &[PathBuf]) -> Result<Summary, RecordingError> {
        let last = dumps.last().ok_or(RecordingError::NothingWritten)?;
        // Events that left the memory before the dump are not lost, so the trace itself has to say what is in
        // it.
        let (accounts, _) = Trace::open(last)?.check();
        Ok(Summary { dumps: names(dumps), ..Summary::of(last, accounts) })
    }

    /// Of what a flight recorder had kept and could not write into this directory, after earlier dumps.
    pub(crate) fn of_unwritten(directory: &Path, kept: Vec<Account>, dumps: &[PathBuf]) -> Summary {
        let accounts = kept.into_iter().map(unwritten).collect();
        Summary { dumps: names(dumps), ..Summary::of(directory, accounts) }
    }

    /// With what only the recorder knows.
    pub(crate) fn after(self, passed: Duration, missed_runs: u64, garbled: Vec<String>) -> Summary {
        Summary { passed_s: passed.as_secs_f64(), missed_runs, garbled, ..self }
    }

    /// Checks that everything that was recorded is written.
    ///
    /// # Errors
    ///
    /// [`RecordingError::NotWritten`]
    pub fn check_written(&self) -> Result<(), RecordingError> {
        match self.unwritten {
            0 => Ok(()),
            events => Err(RecordingError::NotWritten { events, trace: self.trace.clone() }),
        }
    }
}

/// The account of a processor whose records stayed in memory.
fn unwritten(account: Account) -> Account {
    Account { records: 0, lost: account.lost + account.records, unwritten: account.records, ..account }
}

fn names(dumps: &[PathBuf]) -> Vec<String> {
    dumps.iter().map(|dump| dump.display().to_string()).collect()
}

/// The size of the trace's files.
fn written_bytes(directory: &Path) -> u64 {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}
