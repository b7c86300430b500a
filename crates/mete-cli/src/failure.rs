//! Failures, as one sentence.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::output::ClosedPipe;
use crate::terminal::harmless;

/// What a program ends with that SIGPIPE ends, as every other one in the same pipe does.
const CLOSED_PIPE: u8 = 128 + 13;
/// As shells say that a command cannot be run, and that there is none.
const CANNOT_RUN: u8 = 126;
const NO_SUCH_COMMAND: u8 = 127;

/// A command that was to be run and was not.
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

/// Says what went wrong, and with which status to end. A pipe that its reader has closed is
/// no mistake, and nothing is said of it.
pub fn end(error: &anyhow::Error) -> ExitCode {
    if error.chain().any(|cause| cause.is::<ClosedPipe>()) {
        return ExitCode::from(CLOSED_PIPE);
    }
    tell(error);
    match error.chain().find_map(|cause| cause.downcast_ref::<NotRun>()) {
        Some(NotRun(error)) if error.kind() == io::ErrorKind::NotFound => ExitCode::from(NO_SUCH_COMMAND),
        Some(_) => ExitCode::from(CANNOT_RUN),
        None => ExitCode::FAILURE,
    }
}

/// Says on stderr what went wrong. If nobody can hear it, the exit status still tells.
pub fn tell(error: &anyhow::Error) {
    say(&sentence(error));
}

/// Something that people should know, and that does not stop the work.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "mete: {}", harmless(text));
}

/// An error and its causes as one sentence.
pub fn sentence(error: &anyhow::Error) -> String {
    mete_base::sentence(error.as_ref())
}
