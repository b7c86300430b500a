//! One processor's file of blocks, read block by block. The file may be damaged, cut, or somebody
//! else's: every byte is checked before it is believed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mete_schema::regular;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::block::{self, Damage, HEADER_BYTES, Header, RecordingId, What, offset};

/// Something that keeps a part of a trace from being read. What surrounds it can be.
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
        /// The last block's.
        last: u64,
        /// Where in the file the first one begins.
        at: u64,
    },
    /// The file ends in the middle of a block, as that of a recorder that was killed may.
    #[error("{path}, block {block} (from byte {at}): the file ends after {bytes} bytes of it; it is not read", path = path.display())]
    Cut {
        /// The file.
        path: PathBuf,
        /// The block's place in the file, from 0.
        block: u64,
        /// Where in the file it begins.
        at: u64,
        /// How much of it is there.
        bytes: u64,
    },
    /// The file ends before the recording did, and the description knows it.
    #[error(
        "{path}: the file was cut: it has what occurred before #{end_serial}, and the recorder has written more, before #{promised}", path = path.display()
    )]
    Short {
        /// The file.
        path: PathBuf,
        /// Serial number behind the last event that the file accounts for.
        end_serial: u64,
        /// That behind the last event of the recording, by its description.
        promised: u64,
    },
    /// The trace's last description.
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
        /// Where.
        at: u64,
        /// The system's answer.
        source: io::Error,
    },
}

/// Whether a block has nothing in it.
pub(crate) fn is_unwritten(error: &ReadError) -> bool {
    matches!(error, ReadError::Damaged { damage: Damage { what: What::Unwritten, .. }, .. })
}

/// An open file of blocks.
#[derive(Debug)]
pub struct BlockFile {
    /// `None` where there is none.
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

    /// In the place of a file that cannot be opened: it has no block.
    pub(crate) fn absent(path: &Path, processor: u32, block_bytes: u32, recording: RecordingId) -> BlockFile {
        let path = path.to_owned();
        BlockFile { file: None, path, bytes: 0, processor, block_bytes, recording, first_number: 0 }
    }

    /// Whether there is a file.
    pub(crate) fn is_there(&self) -> bool {
        self.file.is_some()
    }

    /// The number of the block at the front: that of a flight recorder's trace is not 0. Any sound
    /// block tells it.
    fn find_first_number(&self) -> u64 {
        let (mut bytes, mut block) = (Vec::new(), 0);
        while block < self.blocks() {
            let read = self.read_any(block, &mut bytes);
            if let Some(first) = read.as_ref().ok().and_then(|header| header.number.checked_sub(block)) {
                return first;
            }
            block = match read {
                Err(error) if is_unwritten(&error) => self.end_of_nothing(block),
                _ => block + 1,
            };
        }
        0
    }

    /// The block behind those that follow this one and into which nothing was written, either. Where the file has no
    /// room on the disk, it is not read: it may be larger than any disk.
    pub(crate) fn end_of_nothing(&self, block: u64) -> u64 {
        let mut block = block + 1;
        while block < self.blocks() {
            let beginning = self.place(block);
            let next = self.next_data(beginning);
            if next >= beginning.saturating_add(self.block_bytes.into()) {
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

    /// Where the file has something on the disk, at this place or behind it; where its file system does not say, here.
    fn next_data(&self, at: u64) -> u64 {
        let Some(file) = &self.file else { return at };
        match seek(file, SeekFrom::Data(at)) {
            Ok(place) => place,
            Err(Errno::NXIO) => self.bytes.max(at),
            Err(_) => at,
        }
    }

    /// What is wrong with these blocks and those before `end`.
    pub(crate) fn unwritten(&self, block: u64, end: u64) -> ReadError {
        ReadError::Unwritten { path: self.path.clone(), block, last: end - 1, at: self.place(block) }
    }

    /// Places for blocks, the last of which may be incomplete.
    pub fn blocks(&self) -> u64 {
        self.bytes.div_ceil(self.block_bytes.into())
    }

    /// The number of the first block.
    pub fn first_number(&self) -> u64 {
        self.first_number
    }

    /// The processor that it was recorded on.
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
    /// [`ReadError`] if it is not what was written; `into` holds nothing then.
    pub fn read(&self, block: u64, into: &mut Vec<u8>) -> Result<Header, ReadError> {
        let header = self.read_any(block, into)?;
        if header.number == self.first_number.wrapping_add(block) {
            return Ok(header);
        }
        into.clear();
        Err(self.damaged(block, Damage { at: offset::NUMBER, what: What::Field("block number") }))
    }

    /// The same for a block of any number.
    fn read_any(&self, block: u64, into: &mut Vec<u8>) -> Result<Header, ReadError> {
        into.clear();
        let header = self.header(block)?;
        into.resize(header.written_bytes(), 0);
        let checked = self.read_part(block, into);
        let damage = |damage| self.damaged(block, damage);
        let checked = checked.and_then(|()| block::check(&header, into).map_err(damage));
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
        let damage = |at, name| Err(self.damaged(block, Damage { at, what: What::Field(name) }));
        if header.recording != self.recording {
            return damage(offset::RECORDING, "recording");
        }
        if header.processor != self.processor {
            return damage(offset::PROCESSOR, "processor");
        }
        Ok(header)
    }

    /// Reads the front of a block.
    fn read_part(&self, block: u64, into: &mut [u8]) -> Result<(), ReadError> {
        let at = self.place(block);
        let there = self.bytes.saturating_sub(at);
        let path = || self.path.clone();
        let file = self.file.as_ref().filter(|_| there >= into.len() as u64);
        let Some(file) = file else {
            return Err(ReadError::Cut { path: path(), block, at, bytes: there });
        };
        match file.read_exact_at(into, at) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(ReadError::Cut { path: path(), block, at, bytes: 0 })
            }
            read => read.map_err(|source| ReadError::File { path: path(), at, source }),
        }
    }

    fn place(&self, block: u64) -> u64 {
        block.saturating_mul(self.block_bytes.into())
    }

    pub(crate) fn damaged(&self, block: u64, damage: Damage) -> ReadError {
        ReadError::Damaged { path: self.path.clone(), block, at: self.place(block), damage }
    }

    /// The first block in which there may be records from this time on. If a block on the way
    /// cannot be read, the first of all.
    pub fn find(&self, time: u64) -> u64 {
        let (mut low, mut high) = (0, self.blocks());
        let mut bytes = Vec::new();
        while low < high {
            let middle = low + (high - low) / 2;
            match self.read(middle, &mut bytes) {
                Ok(header) if header.last_time < time => low = middle + 1,
                Ok(_) | Err(ReadError::Cut { .. }) => high = middle,
                Err(_) => return 0,
            }
        }
        low
    }

    /// Whether times rise throughout the file, so that they tell where to look: its last sound
    /// block says so.
    pub fn is_ordered(&self) -> bool {
        let mut bytes = Vec::new();
        let last = (0..self.blocks()).rev().take(2).find_map(|block| self.read(block, &mut bytes).ok());
        last.is_some_and(|header| header.flags & block::FLAG_DISORDER == 0)
    }
}
