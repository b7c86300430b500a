//! A trace directory: its description and its files.

use std::path::{Path, PathBuf};

use mete_log::Ticks;

use crate::block::RecordingId;
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
    /// Why the last description could not be read, if the first one stands in for it.
    damage: Option<String>,
}

impl Trace {
    /// Opens a trace by its description. If the last description cannot be read, the one before is used, and
    /// [`Trace::merge`] reports that first.
    ///
    /// # Errors
    ///
    /// [`DescriptionFileError`] if there is none, or none that this program can read.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Trace, DescriptionFileError> {
        let directory = directory.into();
        let (mut description, damage) = match TraceDescription::read(&directory) {
            Ok(description) => (description, None),
            Err(error) => match TraceDescription::read_former(&directory) {
                Some(former) => (former, Some(error.to_string())),
                None => return Err(error),
            },
        };
        // The description may come from any program: a file that is listed twice would be read twice.
        description.files.sort_by_key(|file| file.processor);
        description.files.dedup_by_key(|file| file.processor);
        Ok(Trace { directory, description, damage })
    }

    /// The same trace, reduced to this time (bounds included) in one respect: of the losses without serial
    /// numbers, its description has only those that may have been in this time.
    pub fn of_time(mut self, from: Option<Ticks>, until: Option<Ticks>) -> Trace {
        self.description.circumstances.narrow(from, until);
        self
    }

    /// What the trace says about itself.
    pub fn description(&self) -> &TraceDescription {
        &self.description
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The layout of an event's records; `None` for unknown numbers, and for marks of the recorder that have
    /// no layout.
    pub fn event(&self, id: u16) -> Option<&EventLayout> {
        self.description.description.events.iter().find(|event| event.id == id)
    }

    /// One processor's file.
    ///
    /// # Errors
    ///
    /// [`ReadError::File`] if it cannot be opened.
    pub fn file(&self, processor: u32) -> Result<BlockFile, ReadError> {
        let (path, block_bytes, recording) = self.blocks_of(processor);
        BlockFile::open(&path, processor, block_bytes, recording)
    }

    /// Where a processor's blocks are, their size, and the recording that they carry.
    fn blocks_of(&self, processor: u32) -> (PathBuf, u32, RecordingId) {
        let path = self.directory.join(crate::description::file_name(processor));
        (path, self.description.block_bytes, self.description.recording_id().unwrap_or_default())
    }

    /// What a file must have, as the recorder said at its end.
    fn promised(&self, processor: u32) -> Option<Account> {
        let accounts = self.description.completeness.iter().filter(|_| self.description.finished);
        accounts.copied().find(|account| account.processor == processor)
    }

    /// All processors' records, merged by time stamp (KLogger §5.2, KLOG-7). The merge hands out first which
    /// files cannot be opened, and then reads the others. What the description of a finished recording counts
    /// and a file does not have is a gap at the end of that file.
    pub fn merge(&self, filter: Filter) -> Merge {
        let mut readers = Vec::new();
        let mut missing: Vec<_> =
            self.damage.iter().cloned().map(|why| ReadError::Description { why }).collect();
        for file in self.description.files.iter().filter(|file| filter.has_processor(file.place())) {
            let (number, programs_of, promised) =
                (file.processor, file.programs_of, self.promised(file.processor));
            let file = self.file(number).map_err(|error| missing.push(error)).or_else(|()| {
                // A file that is gone: everything that it had is missing.
                let (path, block_bytes, recording) = self.blocks_of(number);
                promised.map(|_| BlockFile::absent(&path, number, block_bytes, recording)).ok_or(())
            });
            let Ok(file) = file else { continue };
            let reader = ProcessorReader::between(file, filter.read_from(), filter.until_ticks)
                .accounting_from(filter.from_ticks);
            readers.push(reader.of_programs(programs_of).promised(promised));
        }
        Merge::new(readers, missing, filter)
    }

    /// What is in the trace and what is not (NEW-2), found by reading all of it, and the errors for what
    /// could not be read.
    pub fn check(&self) -> (Vec<Account>, Vec<ReadError>) {
        let (mut errors, mut merged) = (Vec::new(), self.merge(Filter::default()));
        while let Some(item) = merged.next() {
            errors.extend(item.err());
        }
        (merged.accounts(), errors)
    }
}
