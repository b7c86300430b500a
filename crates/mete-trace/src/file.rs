//! One processor's file of blocks, read block by block. The file may be damaged or cut, or may be another
//! program's file: every byte is checked before it is used.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mete_base::regular;
use mete_log::Ticks;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::block::{self, Damage, DamageKind, HEADER_BYTES, Header, RecordingId, offset};

/// Why a part of a trace cannot be read. The parts around it can be.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A block is not what was written.
    #[error("{path}, block {block} (from byte {at}): {damage}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The block's place in the file, from 0.
        block: u64,
        /// Where in the file it begins.
        at: u64,
        /// What is wrong, and where in the block.
        damage: Damage,
    },
    /// Nothing was written into several blocks that follow each other.
    #[error("{path}, blocks {block} to {last} (from byte {at}): nothing was written here", path = path.display())]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// The first block's place in the file, from 0.
        block: u64,
        /// The last block's place in the file.
        last: u64,
        /// Where in the file the first one begins.
        at: u64,
    },
    /// The file ends in the middle of a block, which happens when a recorder is killed.
    #[error("{path}, block {block} (from byte {at}): the file ends after {bytes} bytes of it; it is not read", path = path.display())]
    Cut {
        /// The file.
        path: PathBuf,
        /// The block's place in the file, from 0.
        block: u64,
        /// Where in the file it begins.
        at: u64,
        /// How many bytes of it are there.
        bytes: u64,
    },
    /// The file ends before the recording did, as the description says.
    #[error(
        "{path}: the file was cut: it has the events before #{end_serial}, and the recorder has written those before #{promised}", path = path.display()
    )]
    Short {
        /// The file.
        path: PathBuf,
        /// One more than the serial number of the last event that the file accounts for.
        end_serial: u64,
        /// One more than the serial number of the last event of the recording, as the description says.
        promised: u64,
    },
    /// The trace's last description cannot be read.
    #[error("{why}; what was known when recording began is used instead")]
    Description {
        /// What is wrong with it.
        why: String,
    },
    /// The system refused.
    #[error("cannot read {path} at byte {at}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        at: u64,
        /// The system's answer.
        source: io::Error,
    },
}

/// Whether the error says that nothing was written into a block.
pub(crate) fn is_unwritten(error: &ReadError) -> bool {
    matches!(error, ReadError::Damaged { damage: Damage { what: DamageKind::Unwritten, .. }, .. })
}

/// An open file of blocks.
#[derive(Debug)]
pub struct BlockFile {
    /// `None` if the file could not be opened.
    file: Option<File>,
    path: PathBuf,
    bytes: u64,
    processor: u32,
    block_bytes: u32,
    recording: RecordingId,
    first_number: u64,
}

impl BlockFile {
    /// Opens a file of blocks of this size, processor and recording.
    ///
    /// # Errors
    ///
    /// [`ReadError::File`] if the system refuses, or if it is no regular file.
    pub fn open(
        path: &Path,
        processor: u32,
        block_bytes: u32,
        recording: RecordingId,
    ) -> Result<BlockFile, ReadError> {
        let failed = |source| ReadError::File { path: path.to_owned(), at: 0, source };
        let file = regular::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let none = BlockFile::absent(path, processor, block_bytes, recording);
        let mut this = BlockFile { file: Some(file), bytes, ..none };
        this.first_number = this.find_first_number();
        Ok(this)
    }

    /// Stands in for a file that cannot be opened: it has no block.
    pub(crate) fn absent(path: &Path, processor: u32, block_bytes: u32, recording: RecordingId) -> BlockFile {
        let path = path.to_owned();
        BlockFile { file: None, path, bytes: 0, processor, block_bytes, recording, first_number: 0 }
    }

    /// Whether there is a file.
    pub(crate) fn is_there(&self) -> bool {
        self.file.is_some()
    }

    /// The number of the first block in the file, which is not 0 in a flight recorder's trace. Any sound
    /// block tells it.
    fn find_first_number(&self) -> u64 {
        let (mut bytes, mut block) = (Vec::new(), 0);
        while block < self.blocks() {
            let read = self.read_any(block, &mut bytes);
            // A sound block whose number is smaller than its position was moved here. Then the next block
            // decides.
            if let Some(first) = read.as_ref().ok().and_then(|header| header.number.get().checked_sub(block))
            {
                return first;
            }
            block = match read {
                Err(error) if is_unwritten(&error) => self.end_of_nothing(block),
                _ => block + 1,
            };
        }
        0
    }

    /// The next block after `block` into which something was written. Holes, where the file has no room on
    /// the disk, are skipped and not read: the file may be larger than any disk.
    pub(crate) fn end_of_nothing(&self, block: u64) -> u64 {
        let mut block = block + 1;
        while block < self.blocks() {
            let beginning = self.place(block);
            let next = self.next_data(beginning);
            if next >= beginning.saturating_add(self.block_bytes.into()) {
                // The whole block is a hole. The block in which the data begin again is looked at next.
                block = (next / u64::from(self.block_bytes)).min(self.blocks());
                continue;
            }
            match self.header(block) {
                Err(error) if is_unwritten(&error) => block += 1,
                _ => break,
            }
        }
        block
    }

    /// The first byte from `at` on that the file has on the disk. If the file system cannot say that, it is
    /// `at`.
    fn next_data(&self, at: u64) -> u64 {
        let Some(file) = &self.file else { return at };
        match seek(file, SeekFrom::Data(at)) {
            Ok(place) => place,
            // There is nothing but a hole up to the end of the file.
            Err(Errno::NXIO) => self.bytes.max(at),
            Err(_) => at,
        }
    }

    /// The error for a stretch of unwritten blocks, from `block` to the one before `end`.
    pub(crate) fn unwritten(&self, block: u64, end: u64) -> ReadError {
        ReadError::Unwritten { path: self.path.clone(), block, last: end - 1, at: self.place(block) }
    }

    /// The number of places for blocks. The last block may be incomplete.
    pub fn blocks(&self) -> u64 {
        self.bytes.div_ceil(self.block_bytes.into())
    }

    /// The number of the first block.
    pub fn first_number(&self) -> u64 {
        self.first_number
    }

    /// The processor that the file belongs to.
    pub fn processor(&self) -> u32 {
        self.processor
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a block, counted from the front of the file, and checks everything in it.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it is not what was written. `into` is empty then.
    pub fn read(&self, block: u64, into: &mut Vec<u8>) -> Result<Header, ReadError> {
        let header = self.read_any(block, into)?;
        if header.number == self.first_number.wrapping_add(block) {
            return Ok(header);
        }
        into.clear();
        Err(self.damaged(block, Damage { at: offset::NUMBER, what: DamageKind::Field("block number") }))
    }

    /// The same for a block of any number.
    fn read_any(&self, block: u64, into: &mut Vec<u8>) -> Result<Header, ReadError> {
        into.clear();
        let header = self.header(block)?;
        into.resize(header.written_bytes(), 0);
        let checked = self
            .read_part(block, into)
            .and_then(|()| block::check(&header, into).map_err(|damage| self.damaged(block, damage)));
        if checked.is_err() {
            into.clear();
        }
        checked.map(|()| header)
    }

    fn header(&self, block: u64) -> Result<Header, ReadError> {
        let mut bytes = [0; HEADER_BYTES];
        self.read_part(block, &mut bytes)?;
        let header =
            Header::decode(&bytes, self.block_bytes).map_err(|damage| self.damaged(block, damage))?;
        let (at, name) = if header.recording != self.recording {
            (offset::RECORDING, "recording")
        } else if header.processor != self.processor {
            (offset::PROCESSOR, "processor")
        } else {
            return Ok(header);
        };
        Err(self.damaged(block, Damage { at, what: DamageKind::Field(name) }))
    }

    /// Reads the front of a block.
    fn read_part(&self, block: u64, into: &mut [u8]) -> Result<(), ReadError> {
        let at = self.place(block);
        let there = self.bytes.saturating_sub(at);
        let file = self.file.as_ref().filter(|_| there >= into.len() as u64);
        let Some(file) = file else { return Err(self.cut(block, there)) };
        match file.read_exact_at(into, at) {
            // The file has become shorter since it was opened.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.cut(block, 0)),
            read => read.map_err(|source| ReadError::File { path: self.path.clone(), at, source }),
        }
    }

    /// The error for a block of which the file has only this number of bytes.
    fn cut(&self, block: u64, bytes: u64) -> ReadError {
        ReadError::Cut { path: self.path.clone(), block, at: self.place(block), bytes }
    }

    /// Where a block begins in the file.
    fn place(&self, block: u64) -> u64 {
        block.saturating_mul(self.block_bytes.into())
    }

    pub(crate) fn damaged(&self, block: u64, damage: Damage) -> ReadError {
        ReadError::Damaged { path: self.path.clone(), block, at: self.place(block), damage }
    }

    /// The first block that may have records from this time on. If a block that the search needs cannot be
    /// read, the first block of all.
    pub fn find(&self, time: Ticks) -> u64 {
        let (mut low, mut high) = (0, self.blocks());
        let mut bytes = Vec::new();
        while low < high {
            let middle = low + (high - low) / 2;
            match self.read(middle, &mut bytes) {
                Ok(header) if header.last_time < time.get() => low = middle + 1,
                // Only the last block can be cut, and no block comes after it.
                Ok(_) | Err(ReadError::Cut { .. }) => high = middle,
                Err(_) => return 0,
            }
        }
        low
    }

    /// Whether times rise throughout the file, so that they tell where to look. The last sound block says so.
    pub fn is_ordered(&self) -> bool {
        let mut bytes = Vec::new();
        // The very last block may be cut, if the recorder was killed. Then the one before is asked.
        let last = (0..self.blocks()).rev().take(2).find_map(|block| self.read(block, &mut bytes).ok());
        last.is_some_and(|header| header.flags.get() & block::FLAG_DISORDER == 0)
    }
}
