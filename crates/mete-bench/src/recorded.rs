//! A trace that a study has recorded, with the directory of its files.

use std::ops::Deref;
use std::path::Path;

use mete_measure::reason::Reason;
use mete_trace::NamedTrace;

use crate::scratch::Scratch;

/// A trace that can be read any number of times.
pub struct Recorded {
    trace: NamedTrace,
    // The directory must live as long as its files are read.
    _scratch: Option<Scratch>,
}

impl Recorded {
    /// Opens the trace in a directory.
    ///
    /// # Errors
    ///
    /// If there is no trace.
    pub fn open(directory: &Path) -> Result<Recorded, Reason> {
        Ok(Recorded { trace: NamedTrace::open(directory)?, _scratch: None })
    }

    /// Opens a trace in a scratch directory, which lives as long as the result.
    pub fn in_scratch(scratch: Scratch, name: &str) -> Result<Recorded, Reason> {
        let trace = NamedTrace::open(scratch.path().join(name))?;
        Ok(Recorded { trace, _scratch: Some(scratch) })
    }
}

impl Deref for Recorded {
    type Target = NamedTrace;

    fn deref(&self) -> &NamedTrace {
        &self.trace
    }
}
