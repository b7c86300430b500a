//! Where closed blocks go: into a file, or into a flight recorder's memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mete_base::folder::Folder;

use crate::block::Block;
use crate::completeness::Account;
use crate::description::OF_FILE;
use crate::directory;

/// Takes blocks, in order.
pub trait Sink: Send {
    /// Takes blocks that follow each other. After an error none of them counts as taken, and the caller comes
    /// again with the same blocks.
    ///
    /// # Errors
    ///
    /// The system's error, such as a full disk.
    fn take(&mut self, blocks: &[Arc<Block>]) -> io::Result<()>;

    /// Keeps what is there now and what comes next: it must not be let go soon.
    fn hold(&mut self) {}
}

/// One processor's file. Each block has its place. What a failed write has left of a block is removed again.
#[derive(Debug)]
pub struct FileSink {
    file: File,
    /// The number of the block at the beginning of the file.
    first: Option<u64>,
}

impl FileSink {
    /// Creates the file, for its owner alone. It must not exist.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn create(path: &Path) -> io::Result<FileSink> {
        Ok(FileSink { file: directory::create(path)?, first: None })
    }

    /// The same, in a folder that is held open.
    pub(crate) fn create_in(folder: &Folder, name: &str) -> io::Result<FileSink> {
        Ok(FileSink { file: folder.create(name, OF_FILE)?, first: None })
    }
}

/// The zeroes between the end of a block's records and the next block.
static NOTHING: [u8; 64 << 10] = [0; 64 << 10];

impl Sink for FileSink {
    /// Writes all blocks with one system call, unless the system takes fewer bytes at once.
    fn take(&mut self, blocks: &[Arc<Block>]) -> io::Result<()> {
        let Some(front) = blocks.first() else { return Ok(()) };
        let first = *self.first.get_or_insert(front.header.number.get());
        let place = (front.header.number.get() - first) * u64::from(front.header.block_bytes);
        // If the file cannot be cut, either, the next try overwrites what is left.
        write_all_at(&self.file, &pieces(blocks), place).inspect_err(|_| drop(self.file.set_len(place)))
    }
}

/// Blocks with the zeroes between them. After the last block there are none, so that a block that was closed
/// early takes no more room than it needs.
fn pieces(blocks: &[Arc<Block>]) -> Vec<&[u8]> {
    let mut pieces = Vec::with_capacity(2 * blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        pieces.push(&block.bytes[..]);
        let mut gap = block.header.block_bytes.get() as usize - block.bytes.len();
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
        // The kernel takes at most 1024 slices (UIO_MAXIOV).
        let most = rest.len().min(1024);
        match rustix::io::pwritev(file, &rest[..most], place) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                place += written as u64;
                IoSlice::advance_slices(&mut rest, written);
            }
            // A signal came before a byte was written; the same write is tried again.
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The newest blocks of one processor, in memory.
#[derive(Clone, Debug)]
pub struct Flight {
    kept: Arc<Mutex<KeptBlocks>>,
    most: usize,
    /// One flag for all processors: events on the others belong to the event that is held.
    hold: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct KeptBlocks {
    blocks: VecDeque<Arc<Block>>,
    /// Whether blocks came while the flight was held and found no room. Then no later block may follow the
    /// held ones.
    is_cut: bool,
}

impl Flight {
    /// Keeps at most `bytes` bytes of whole blocks, but at least one block. `hold` is shared by all flights
    /// that are held together.
    ///
    /// While a flight is held, the same number of further blocks is taken and none is let go. So the event
    /// for which it is held stays, with the events that led to it, however late it is fetched.
    pub fn new(bytes: u64, block_bytes: u32, hold: Arc<AtomicBool>) -> Flight {
        let most = (bytes / u64::from(block_bytes)).max(1) as usize;
        Flight { kept: Arc::default(), most, hold }
    }

    /// The flag by which other flights are held together with this one.
    pub fn shared_hold(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.hold)
    }

    /// The blocks that are there now, oldest first.
    pub fn blocks(&self) -> Vec<Arc<Block>> {
        self.lock().blocks.iter().cloned().collect()
    }

    /// The account that a trace of these blocks would have, as the file of this number.
    pub fn account(&self, file: u32, programs_of: Option<u32>) -> Account {
        let kept = self.lock();
        let headers = || kept.blocks.iter().map(|block| &block.header);
        let mut account = Account { processor: file, programs_of, ..Account::default() };
        let Some((front, back)) = headers().next().zip(headers().next_back()) else { return account };
        headers().for_each(|header| account.note(header));
        // Blocks that were let go are no loss. Events that were lost before the first block of all are.
        let first_serial = if front.number == 0 { 0 } else { front.first_serial.get() };
        let end_serial = back.end_serial.get();
        Account { first_serial, end_serial, lost: end_serial - first_serial - account.records, ..account }
    }

    /// Ends the hold: blocks may be let go again.
    pub fn release(&self) {
        self.hold.store(false, Ordering::Release);
        let mut kept = self.lock();
        if std::mem::take(&mut kept.is_cut) {
            // Blocks are missing after these, and a trace's blocks must follow each other.
            kept.blocks.clear();
        }
    }

    /// The blocks, also after a panic: no code that holds the lock can leave the queue half changed.
    fn lock(&self) -> MutexGuard<'_, KeptBlocks> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Flight {
    fn take(&mut self, blocks: &[Arc<Block>]) -> io::Result<()> {
        let mut kept = self.lock();
        let is_held = self.hold.load(Ordering::Acquire);
        kept.is_cut |= is_held && kept.blocks.len() >= 2 * self.most;
        if kept.is_cut {
            return Ok(());
        }
        kept.blocks.extend(blocks.iter().cloned());
        if !is_held {
            let over = kept.blocks.len().saturating_sub(self.most);
            kept.blocks.drain(..over);
        }
        Ok(())
    }

    fn hold(&mut self) {
        self.hold.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Builder;

    fn numbers(flight: &Flight) -> Vec<u64> {
        flight.blocks().iter().map(|block| block.header.number.get()).collect()
    }

    #[test]
    fn klog_6_a_flight_recorder_lets_nothing_go_that_is_held() -> io::Result<()> {
        let mut builder = Builder::new([0; 16], 0, 8192);
        let mut next = || [Arc::new(builder.seal())];
        let mut flight = Flight::new(2 * 8192, 8192, Arc::default());
        for _ in 0..5 {
            flight.take(&next())?;
        }
        assert_eq!(numbers(&flight), [3, 4]);
        // Another processor's flight holds this one, too.
        Flight::new(0, 8192, flight.shared_hold()).hold();
        for _ in 5..9 {
            flight.take(&next())?;
        }
        assert_eq!(numbers(&flight), [3, 4, 5, 6], "the same number again, and then no more");
        flight.release();
        flight.take(&next())?;
        assert_eq!(numbers(&flight), [9], "no block is kept from before the missing ones");
        flight.take(&next())?;
        flight.hold();
        flight.take(&next())?;
        flight.release();
        flight.take(&next())?;
        assert_eq!(numbers(&flight), [11, 12], "no block was missing");
        Ok(())
    }
}
