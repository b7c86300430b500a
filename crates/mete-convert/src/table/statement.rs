//! What is in the trace and what is not, as metadata of a table (NEW-2).

use mete_trace::description::Circumstances;
use mete_trace::{Account, MissedRuns, ReadError};

/// Parts that are named; the number of all is there, too.
const MOST_NAMED: usize = 1000;

/// Collects what a conversion is told of parts that cannot be read.
#[derive(Debug, Default)]
pub struct Statement {
    missed_runs: u64,
    missed: Vec<MissedRuns>,
    named: Vec<String>,
    unreadable: u64,
}

impl Statement {
    /// Of a recording whose circumstances say how often the kernel left out a program, and when.
    pub fn new(circumstances: &Circumstances) -> Statement {
        let Circumstances { missed_runs, missed, .. } = circumstances;
        Statement { missed_runs: *missed_runs, missed: missed.clone(), ..Statement::default() }
    }

    /// One more part that cannot be read.
    pub fn unreadable(&mut self, error: &ReadError) {
        self.unreadable += 1;
        if self.named.len() < MOST_NAMED {
            self.named.push(error.to_string());
        }
    }

    /// All of it as JSON.
    pub fn text(&self, accounts: &[Account]) -> String {
        serde_json::json!({
            "processors": accounts, "unreadable_parts": self.unreadable, "unreadable": self.named,
            "missed_runs": self.missed_runs, "missed": self.missed,
        })
        .to_string()
    }
}
