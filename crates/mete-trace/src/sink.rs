//! Where closed blocks go: into a file, or into a flight recorder's memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::block::Block;

/// Takes blocks, in order.
pub trait Sink: Send {
    /// Takes blocks that follow each other. After an error none of them counts as taken, and the
    /// caller comes again with the same ones.
    ///
    /// # Errors
    ///
    /// Whatever the system answers, such as a full disk.
    fn take(&mut self, blocks: &[Arc<Block>]) -> io::Result<()>;
}

/// One processor's file. Each block has its place, so what a failed write left is overwritten by
/// the next try.
#[derive(Debug)]
pub struct FileSink {
    file: File,
    /// The number of the block at the beginning of the file.
    first: Option<u64>,
}

impl FileSink {
    /// Creates the file; it must not exist.
    ///
    /// # Errors
    ///
    /// Whatever the system answers.
    pub fn create(path: &Path) -> io::Result<FileSink> {
        let file = File::options().write(true).create_new(true).open(path)?;
        Ok(FileSink { file, first: None })
    }
}

/// What stands between the end of a block's records and the next block.
static NOTHING: [u8; 64 << 10] = [0; 64 << 10];

impl Sink for FileSink {
    /// All blocks by one system call, unless the system takes fewer bytes at once.
    fn take(&mut self, blocks: &[Arc<Block>]) -> io::Result<()> {
        let Some(front) = blocks.first() else { return Ok(()) };
        let first = *self.first.get_or_insert(front.header.number);
        let place = (front.header.number - first) * u64::from(front.header.block_bytes);
        write_all_at(&self.file, &pieces(blocks), place)
    }
}

/// Blocks with the gaps between them; behind the last there is none, so that a block that was
/// closed early takes no more room than it needs.
fn pieces(blocks: &[Arc<Block>]) -> Vec<&[u8]> {
    let mut pieces = Vec::with_capacity(2 * blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        pieces.push(&block.bytes[..]);
        let mut gap = block.header.block_bytes as usize - block.bytes.len();
        while index + 1 < blocks.len() && gap > 0 {
            let piece = gap.min(NOTHING.len());
            pieces.push(&NOTHING[..piece]);
            gap -= piece;
        }
    }
    pieces
}

fn write_all_at(file: &File, pieces: &[&[u8]], mut place: u64) -> io::Result<()> {
    let mut slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        let most = rest.len().min(1024);
        match rustix::io::pwritev(file, &rest[..most], place) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                place += written as u64;
                IoSlice::advance_slices(&mut rest, written);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The newest blocks of one processor, in memory.
#[derive(Clone, Debug)]
pub struct Flight {
    blocks: Arc<Mutex<VecDeque<Arc<Block>>>>,
    most: usize,
}

impl Flight {
    /// Keeps at most `bytes` bytes of whole blocks, at least one.
    pub fn new(bytes: u64, block_bytes: u32) -> Flight {
        let most = (bytes / u64::from(block_bytes)).max(1) as usize;
        Flight { blocks: Arc::default(), most }
    }

    /// The blocks that are there now, oldest first.
    pub fn blocks(&self) -> Vec<Arc<Block>> {
        self.lock().iter().cloned().collect()
    }

    /// No code that holds the lock can leave the queue half changed.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Block>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Flight {
    fn take(&mut self, blocks: &[Arc<Block>]) -> io::Result<()> {
        let mut kept = self.lock();
        kept.extend(blocks.iter().cloned());
        let over = kept.len().saturating_sub(self.most);
        kept.drain(..over);
        Ok(())
    }
}
