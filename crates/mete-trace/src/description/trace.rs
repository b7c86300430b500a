//! All that a description file says.

use serde::{Deserialize, Serialize};

use super::circumstances::Circumstances;
use super::clock::Clock;
use super::files::file_name;
use super::layout::Description;
use super::machine::Machine;
use crate::block::{RecordingId, is_sound_block_size};
use crate::completeness::Account;
use crate::names;

/// The text of the field `format`.
pub const FORMAT: &str = "mete trace";
/// The version of the format, which is also the version of the blocks.
pub const VERSION: u32 = 1;

/// All that `description.json` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceDescription {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The recording's number, in hexadecimal: every block carries it.
    pub recording: String,
    /// Whether recording was stopped in order. If not, `completeness` is empty, and only the blocks tell what
    /// is there.
    pub finished: bool,
    /// Bytes of each block.
    pub block_bytes: u32,
    /// The files of blocks.
    pub files: Vec<TraceFile>,
    /// The clock.
    pub clock: Clock,
    /// The machine.
    pub machine: Machine,
    /// How it was recorded.
    pub circumstances: Circumstances,
    /// For each processor, what is in the trace and what is not.
    pub completeness: Vec<Account>,
    /// Schema and layouts.
    #[serde(flatten)]
    pub description: Description,
}

/// One processor's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// The processor. Files of programs' own events, beside the kernel's files, have the numbers after the
    /// last processor's.
    pub processor: u32,
    /// The file's name, in the trace's directory.
    pub name: String,
    /// The processor on which the programs ran whose own events are in this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs_of: Option<u32>,
}

impl TraceFile {
    /// The processor on which the events in the file occurred.
    pub fn place(&self) -> u32 {
        self.programs_of.unwrap_or(self.processor)
    }
}

impl TraceDescription {
    /// Reads a description from the file's bytes, and checks it.
    ///
    /// # Errors
    ///
    /// A sentence that says why it cannot be right.
    pub fn parse(bytes: &[u8]) -> Result<TraceDescription, String> {
        let this: TraceDescription =
            // The error may quote the file, which may hold control characters.
            serde_json::from_slice(bytes).map_err(|error| names::without_controls(&error.to_string()))?;
        if this.format != FORMAT || this.version != VERSION {
            let (format, version) = (&this.format, this.version);
            return Err(format!(
                "it is {format:?} version {version}; this program reads {FORMAT:?} version {VERSION}"
            ));
        }
        if !is_sound_block_size(this.block_bytes) {
            return Err(format!("blocks cannot have {} bytes", this.block_bytes));
        }
        this.recording_id().ok_or_else(|| format!("{:?} is not a recording's number", this.recording))?;
        // A name that contains a path would lead out of the directory.
        match this.files.iter().find(|file| file.name != file_name(file.processor)) {
            Some(file) => Err(format!("processor {}'s file cannot be {:?}", file.processor, file.name)),
            None => this.description.check().map_err(|error| error.to_string()).map(|()| this),
        }
    }

    /// The recording's number as blocks carry it.
    pub fn recording_id(&self) -> Option<RecordingId> {
        let number = u128::from_str_radix(&self.recording, 16).ok()?;
        (self.recording.len() == 32).then(|| number.to_be_bytes())
    }
}

/// A recording's number as `description.json` has it.
pub fn recording_text(id: RecordingId) -> String {
    format!("{:032x}", u128::from_be_bytes(id))
}
