//! What is said of a recording at its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use mete_trace::{Account, Trace};
use serde::Serialize;

use crate::output::Output;
use crate::{failure, trace};

/// What `--json` prints.
#[derive(Serialize)]
pub struct Summary {
    kind: &'static str,
    trace: String,
    passed_s: f64,
    records: u64,
    lost: u64,
    /// Of those.
    unwritten: u64,
    missed_runs: u64,
    bytes: u64,
    processors: Vec<Account>,
    /// What was wrong in buffers that a program garbled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    garbled: Vec<String>,
    /// Where a flight recorder's memory was written, in order; the last one is `trace`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dumps: Vec<String>,
}

impl Summary {
    /// Of a trace with these accounts.
    pub fn of(directory: &Path, processors: Vec<Account>) -> Summary {
        let trace = directory.display().to_string();
        let sum = |of: fn(&Account) -> u64| processors.iter().map(of).sum();
        Summary {
            kind: "recorded",
            passed_s: 0.0,
            records: sum(|account| account.records),
            lost: sum(|account| account.lost),
            unwritten: sum(|account| account.unwritten),
            missed_runs: 0,
            bytes: written_bytes(directory),
            trace,
            processors,
            garbled: Vec::new(),
            dumps: Vec::new(),
        }
    }

    /// Of what a flight recorder has written, the last of which is told.
    pub fn of_dumps(dumps: &[PathBuf]) -> anyhow::Result<Summary> {
        let Some(last) = dumps.last() else { bail!("nothing was written") };
        // What was let go earlier is nobody's loss, so the trace has to say what is in it.
        let (accounts, _) = Trace::open(last)?.check();
        Ok(Summary { dumps: names(dumps), ..Summary::of(last, accounts) })
    }

    /// Of what a flight recorder had kept and could not write into this directory, after others.
    pub fn of_unwritten(directory: &Path, kept: Vec<Account>, dumps: &[PathBuf]) -> Summary {
        let unwritten = |account: Account| Account {
            records: 0,
            lost: account.lost + account.records,
            unwritten: account.records,
            ..account
        };
        let accounts = kept.into_iter().map(unwritten).collect();
        Summary { dumps: names(dumps), ..Summary::of(directory, accounts) }
    }

    /// With what the recorder knows besides.
    pub fn after(self, passed: Duration, missed_runs: u64, garbled: Vec<String>) -> Summary {
        Summary { passed_s: passed.as_secs_f64(), missed_runs, garbled, ..self }
    }

    /// That all that was recorded is written.
    pub fn check_written(&self) -> anyhow::Result<()> {
        let Summary { trace, unwritten, .. } = self;
        if *unwritten > 0 {
            bail!(
                "{unwritten} events could not be written to {trace}; is the disk full, or the file as large as it may be (ulimit -f)? The rest can be read"
            );
        }
        Ok(())
    }

    /// Prints it.
    pub fn tell(&self, output: &mut Output) -> anyhow::Result<()> {
        let Summary { trace: directory, passed_s, records, lost, unwritten, missed_runs, bytes, .. } = self;
        let tells = if Path::new(directory).exists() { "; mete show tells when" } else { "" };
        trace::tell_missed_runs(*missed_runs, tells);
        self.garbled.iter().for_each(|why| failure::say(&trace::garbled_buffer(why)));
        let loss = match (*lost, *unwritten) {
            (0, _) => "none lost".to_owned(),
            (_, 0) => format!("{lost} events lost"),
            _ => format!("{lost} events lost, {unwritten} of which could not be written"),
        };
        // A flight recorder that finds no room leaves nothing.
        let see = match Path::new(directory).exists() {
            true => format!(" See: mete show {directory}"),
            false => String::new(),
        };
        output.object(self)?;
        output.text(format!("{records} records in {passed_s:.1} s, {}, {loss}.{see}", size(*bytes)))
    }
}

fn names(dumps: &[PathBuf]) -> Vec<String> {
    dumps.iter().map(|dump| dump.display().to_string()).collect()
}

/// Bytes of the trace's files.
fn written_bytes(directory: &Path) -> u64 {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

/// `12.3 MB`
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
