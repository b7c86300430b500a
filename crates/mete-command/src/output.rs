//! All results go to stdout through this module. A closed pipe or a full disk is an error like any other,
//! never a panic.

use std::io::{self, IsTerminal, Write};

use anyhow::anyhow;
use serde::Serialize;

use crate::terminal;

/// Where results go: as text, or as one JSON object a line.
pub struct Output {
    is_json: bool,
}

impl Output {
    /// Results as JSON for scripts if `is_json`, otherwise as text for people.
    pub fn new(is_json: bool) -> Output {
        Output { is_json }
    }

    /// Whether results are wanted as JSON.
    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// Prints text and a line end, folded to the width of the terminal. Prints nothing if results are wanted
    /// as JSON.
    pub fn text(&mut self, text: impl AsRef<str>) -> anyhow::Result<()> {
        if self.is_json {
            Ok(())
        } else {
            self.write(terminal::harmless(&terminal::folded(text.as_ref())).as_bytes())
        }
    }

    /// Prints text as it is, such as code, and a line end. On a terminal, letters that would control it are
    /// replaced. Prints nothing if results are wanted as JSON.
    pub fn verbatim(&mut self, text: impl AsRef<str>) -> anyhow::Result<()> {
        let text = text.as_ref();
        match (self.is_json, io::stdout().is_terminal()) {
            (true, _) => Ok(()),
            (false, true) => self.write(terminal::harmless(text).as_bytes()),
            (false, false) => self.write(text.as_bytes()),
        }
    }

    /// Prints one JSON object. Prints nothing if results are wanted as text.
    pub fn object(&mut self, object: &impl Serialize) -> anyhow::Result<()> {
        if self.is_json { self.write(&serde_json::to_vec(object)?) } else { Ok(()) }
    }

    /// Prints a line that is an object already. Prints nothing unless results are wanted as JSON.
    ///
    /// # Errors
    ///
    /// [`ClosedPipe`], or the system's answer.
    pub fn object_line(&mut self, line: &str) -> anyhow::Result<()> {
        if self.is_json { self.write(line.as_bytes()) } else { Ok(()) }
    }

    /// Flushed line by line, so that a reader of a pipe is up to date.
    fn write(&mut self, line: &[u8]) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        let written = out.write_all(line).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
        written.map_err(|error| failed(&error))
    }
}

/// The reader of the results has closed its end of the pipe, as `head` does. This is no failure.
#[derive(Debug)]
pub struct ClosedPipe;

impl std::error::Error for ClosedPipe {}

impl std::fmt::Display for ClosedPipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cannot write the results: their reader has stopped reading (the pipe is closed)")
    }
}

/// Says why results could not be written.
pub fn failed(error: &io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => anyhow::Error::new(ClosedPipe),
        io::ErrorKind::StorageFull => {
            anyhow!("cannot write the results: the disk is full: free some space, or write elsewhere")
        }
        io::ErrorKind::FileTooLarge => {
            anyhow!(
                "cannot write the results: the file is as large as this user's files may be: see ulimit -f"
            )
        }
        _ => anyhow!("cannot write the results: {error}"),
    }
}
