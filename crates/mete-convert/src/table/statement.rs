//! What is in the trace and what is not, as metadata of a table (NEW-2).

use mete_trace::{Account, ReadError};

/// Parts that are named; the number of all is there, too.
const MOST_NAMED: usize = 1000;

/// Collects what a conversion is told of parts that cannot be read.
#[derive(Debug, Default)]
pub struct Statement {
    missed_runs: u64,
    named: Vec<String>,
    unreadable: u64,
}

impl Statement {
    /// Of a recording in which the kernel left out a program so many times.
    pub fn new(missed_runs: u64) -> Statement {
        Statement { missed_runs, ..Statement::default() }
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
            "missed_runs": self.missed_runs,
        })
        .to_string()
    }
}
