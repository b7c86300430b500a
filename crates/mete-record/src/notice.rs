//! What people should know of a recording while it begins, runs and ends.

use std::fmt;
use std::path::PathBuf;

use mete_base::{sentence, size};
use mete_sched::domains::EmptyDomain;

use crate::error::RecordingError;

/// Something that people should know, and that does not stop the recording. `Display` writes it as one
/// sentence.
#[derive(Debug)]
pub enum Notice {
    /// The schema asks for domains, and there are none.
    NoDomains,
    /// No process is in a domain yet.
    Empty(EmptyDomain),
    /// A flight recorder keeps more than it was asked to.
    KeepsMore {
        /// Bytes.
        asked: u64,
        /// Bytes.
        kept: u64,
    },
    /// No program that runs now has these probes.
    ProbesMissing {
        /// Their names, in quotes.
        names: String,
    },
    /// No program that was found while the recording ran had these probes.
    ProbesNeverFound {
        /// Their names, in quotes.
        names: String,
    },
    /// Something about a program with probes.
    Program(String),
    /// What a flight recorder kept is written.
    Dumped {
        /// Where.
        directory: PathBuf,
        /// Why.
        reason: DumpReason,
    },
    /// What a flight recorder kept could not be written.
    NotDumped(RecordingError),
    /// A dump was asked for, and this is no flight recorder.
    NothingToDump,
}

/// Why a flight recorder writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpReason {
    /// A signal asked for it.
    Signal,
    /// An awaited event has occurred.
    Event,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::NoDomains => {
                f.write_str("no process is bound to a domain: `domain` is 0 for all; see --domain")
            }
            Notice::Empty(empty) => empty.fmt(f),
            Notice::KeepsMore { asked, kept } => write!(
                f,
                "{} are kept instead of {}: less than a block of each buffer cannot be",
                size::binary(*kept),
                size::binary(*asked)
            ),
            Notice::ProbesMissing { names } => write!(
                f,
                "no program that runs now has the probe {names}; one that starts later is recorded"
            ),
            Notice::ProbesNeverFound { names } => {
                write!(f, "no program that was found had the probe {names}")
            }
            Notice::Program(text) => f.write_str(text),
            Notice::Dumped { directory, reason } => {
                write!(f, "what was kept is in {} now ({reason})", directory.display())
            }
            Notice::NotDumped(error) => f.write_str(&sentence(error)),
            Notice::NothingToDump => f.write_str(
                "SIGUSR1: there is nothing to dump: without --keep, all events go into the trace as they come",
            ),
        }
    }
}

impl fmt::Display for DumpReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DumpReason::Signal => "SIGUSR1",
            DumpReason::Event => "the event has occurred",
        })
    }
}
