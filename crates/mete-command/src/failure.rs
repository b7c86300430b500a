//! Failures, told in one sentence on stderr, and their exit statuses.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::output::ClosedPipe;
use crate::status::{CANNOT_RUN, CLOSED_PIPE, FAILED, NO_SUCH_COMMAND};
use crate::terminal::harmless;

/// A command could not be run.
#[derive(Debug)]
pub struct NotRun(pub io::Error);

impl std::error::Error for NotRun {}

impl std::fmt::Display for NotRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.kind() {
            io::ErrorKind::NotFound => f.write_str("there is no such program in PATH or at that path"),
            _ => self.0.fmt(f),
        }
    }
}

/// Says what went wrong and returns the exit status. A pipe that its reader has closed is no mistake, and
/// nothing is said of it.
pub fn end(error: &anyhow::Error) -> ExitCode {
    if error.chain().any(|cause| cause.is::<ClosedPipe>()) {
        return ExitCode::from(CLOSED_PIPE);
    }
    say(&mete_base::sentence(error.as_ref()));
    match error.chain().find_map(|cause| cause.downcast_ref::<NotRun>()) {
        Some(NotRun(error)) if error.kind() == io::ErrorKind::NotFound => ExitCode::from(NO_SUCH_COMMAND),
        Some(_) => ExitCode::from(CANNOT_RUN),
        None => ExitCode::from(FAILED),
    }
}

/// Says on stderr something that the user should know and that does not stop the work.
pub fn say(text: &str) {
    // If stderr is closed, the exit status still tells of a failure.
    let _ = writeln!(std::io::stderr(), "mete: {}", harmless(text));
}
