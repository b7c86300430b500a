//! The statement of what is in the trace and what is not, as metadata of a table (NEW-2).

use mete_trace::description::Circumstances;
use mete_trace::{Account, MissedRuns, ReadError};

/// The number of unreadable parts that are named. The statement also has the number of all of them.
const MOST_NAMED: usize = 1000;

/// Collects the errors of parts that cannot be read.
#[derive(Debug, Default)]
pub struct CompletenessStatement {
    missed_runs: u64,
    missed: Vec<MissedRuns>,
    named: Vec<String>,
    unreadable: u64,
}

impl CompletenessStatement {
    /// The statement for a recording whose circumstances say how often the kernel left out a program, and
    /// when.
    pub fn new(circumstances: &Circumstances) -> CompletenessStatement {
        let Circumstances { missed_runs, missed, .. } = circumstances;
        CompletenessStatement {
            missed_runs: *missed_runs,
            missed: missed.clone(),
            ..CompletenessStatement::default()
        }
    }

    /// Adds a part that cannot be read.
    pub fn unreadable(&mut self, error: &ReadError) {
        self.unreadable += 1;
        if self.named.len() < MOST_NAMED {
            self.named.push(error.to_string());
        }
    }

    /// The statement as JSON.
    pub fn text(&self, accounts: &[Account]) -> String {
        serde_json::json!({
            "processors": accounts, "unreadable_parts": self.unreadable, "unreadable": self.named,
            "missed_runs": self.missed_runs, "missed": self.missed,
        })
        .to_string()
    }
}
