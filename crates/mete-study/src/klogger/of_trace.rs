//! The common parts of studies that are made of a recorded trace.

use std::path::Path;

use mete_bench::recording::Recorded;
use mete_measure::{Reason, Report, Row};

use crate::study::{Study, StudyFile, StudyResults};

/// The trace in this directory, if it was recorded with these events of the schema.
pub(super) fn open(directory: &Path, schema: &str, events: &[&str]) -> Result<Recorded, Reason> {
    let recorded = Recorded::open(directory)?;
    recorded.needs(schema, events)?;
    Ok(recorded)
}

/// What the study makes of the trace in this directory. There are no claims and no page, because the trace
/// can be of any program.
pub(super) fn results<S: Study>(directory: &Path, rows: Vec<Row>, files: Vec<StudyFile>) -> StudyResults {
    let mut report = Report::new(format!("mete study {} --trace {}", S::NAME, directory.display()));
    report.rows = rows;
    StudyResults { folder: S::NAME, report, claim_results: Vec::new(), files }
}

/// The note of a row whose trace is not complete.
pub(super) fn loss(events: u64) -> String {
    if events == 0 { String::new() } else { format!("{events} events were lost") }
}
