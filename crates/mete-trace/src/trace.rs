//! A trace directory: its description and its files.

use std::path::{Path, PathBuf};

use crate::completeness::Account;
use crate::description::{DescriptionFileError, EventLayout, TraceDescription};
use crate::file::{BlockFile, ReadError};
use crate::filter::Filter;
use crate::merge::Merge;
use crate::reader::ProcessorReader;

/// A trace that can be read.
#[derive(Clone, Debug)]
pub struct Trace {
    directory: PathBuf,
    description: TraceDescription,
}

impl Trace {
    /// Opens a trace by its description.
    ///
    /// # Errors
    ///
    /// [`DescriptionFileError`] if there is none, or none that this program reads.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Trace, DescriptionFileError> {
        let directory = directory.into();
        let mut description = TraceDescription::read(&directory)?;
        description.files.sort_by_key(|file| file.processor);
        description.files.dedup_by_key(|file| file.processor);
        Ok(Trace { directory, description })
    }

    /// What the trace says of itself.
    pub fn description(&self) -> &TraceDescription {
        &self.description
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The layout of an event's records; `None` for the recorder's own marks and unknown numbers.
    pub fn event(&self, id: u16) -> Option<&EventLayout> {
        self.description.description.events.iter().find(|event| event.id == id)
    }

    /// One processor's file.
    ///
    /// # Errors
    ///
    /// [`ReadError::File`] if it cannot be opened.
    pub fn file(&self, processor: u32) -> Result<BlockFile, ReadError> {
        let path = self.directory.join(crate::description::file_name(processor));
        let recording = self.description.recording_id().unwrap_or_default();
        BlockFile::open(&path, processor, self.description.block_bytes, recording)
    }

    /// All processors' records, merged by time stamp (KLogger §5.2, KLOG-7). A file that cannot be
    /// opened is the first thing that the merge hands out; the others are read.
    pub fn merge(&self, filter: Filter) -> Merge {
        let (mut readers, mut missing) = (Vec::new(), Vec::new());
        for file in self.description.files.iter().filter(|file| filter.has_processor(file.place())) {
            let programs_of = file.programs_of;
            match self.file(file.processor) {
                Ok(file) => readers
                    .push(ProcessorReader::between(file, filter.from, filter.until).of_programs(programs_of)),
                Err(error) => missing.push(error),
            }
        }
        Merge::new(readers, missing, filter)
    }

    /// What is in the trace and what is not (NEW-2), found by reading all of it, and what could
    /// not be read.
    pub fn check(&self) -> (Vec<Account>, Vec<ReadError>) {
        let (mut errors, mut merged) = (Vec::new(), self.merge(Filter::default()));
        while let Some(item) = merged.next() {
            errors.extend(item.err());
        }
        (merged.accounts(), errors)
    }
}
