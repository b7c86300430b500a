//! The memory of recording buffers: one area for each processor, in a sealed memory file that other processes
//! can map. It is locked, so that recording never waits for a page (KLogger §5.1).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use mete_log::sealed::{Mapping, SealedError};
use rustix::fs::SealFlags;
use rustix::io::Errno;
use rustix::mm::ProtFlags;

use crate::buffer::Buffer;
use crate::layout::{self, area_bytes};

/// Buffers for processors, in any kind of memory: a [`Memory`], or a mapped eBPF array.
pub trait Buffers: Send + Sync + 'static {
    /// The number of buffers.
    fn processors(&self) -> usize;

    /// The buffer of one processor, `0..processors()`.
    fn buffer(&self, processor: usize) -> Buffer<'_>;

    /// The processor on which the programs run whose own events go into this buffer; `None` if this is one of
    /// the kernel's buffers, or if the kernel has none.
    fn programs_of(&self, buffer: usize) -> Option<u32> {
        let _ = buffer;
        None
    }

    /// Whether a single producer fills this buffer, in order of time, with events that happened earlier.
    /// Marks of the present moment would be out of order there. So flushes leave no marks in it, and the
    /// producer itself [marks](crate::switch::mark) events that are switched.
    fn is_gathered(&self, buffer: usize) -> bool {
        let _ = buffer;
        false
    }

    /// Why the memory is not locked, if it is not.
    fn not_locked(&self) -> Option<String>;
}

/// Why there are no buffers.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// A number out of range.
    #[error(
        "recording buffers of 2^{size_log2} bytes for {processors} processors: the size must be 2^16 to 2^30, the processors 1 to 4096"
    )]
    Size {
        /// Binary logarithm of the bytes for each processor.
        size_log2: u32,
        /// Processors asked for.
        processors: usize,
    },
    /// No recorder has written the buffers' headers.
    #[error("the offered recording buffers were not made by a recorder of this version; refused")]
    NotMade,
    /// The memory cannot be had, or the offered memory is refused.
    #[error("no recording buffers: {0}")]
    Sealed(#[from] SealedError),
}

/// Recording buffers in a memory file.
///
/// Invariant: the mapping is of `processors` areas of `area_bytes(size_log2)` bytes of `file`.
#[derive(Debug)]
pub struct Memory {
    mapping: Mapping,
    size_log2: u32,
    processors: usize,
    lock: Result<(), Errno>,
    file: OwnedFd,
}

impl Memory {
    /// Buffers of `2^size_log2` bytes each, zeroed and locked, with their headers written. If locking is
    /// refused, they can be paged out, and [`Buffers::not_locked`] says so.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] if a number is out of range or the kernel refuses memory.
    pub fn new(processors: usize, size_log2: u32, low_water_percent: u8) -> Result<Memory, MemoryError> {
        let bytes = checked_bytes(processors, size_log2)?;
        let (file, mapping) = Mapping::create("mete-trace", bytes, SealFlags::empty())?;
        // SAFETY: this is the mapping that was just made.
        let lock = unsafe { rustix::mm::mlock(mapping.base().as_ptr().cast(), bytes) };
        let memory = Memory { mapping, size_log2, processors, lock, file };
        for processor in 0..processors {
            memory.buffer(processor).initialise(processor as u32, low_water_percent);
        }
        Ok(memory)
    }

    /// The buffers of another process, in the file that it made for them.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] if [`Memory::new`] does not make such a file for these numbers, or if it cannot be
    /// mapped.
    pub(crate) fn join(file: OwnedFd, processors: usize, size_log2: u32) -> Result<Memory, MemoryError> {
        let bytes = checked_bytes(processors, size_log2)?;
        let mapping = Mapping::join(&file, bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        let memory = Memory { mapping, size_log2, processors, lock: Ok(()), file };
        // By now the descriptor's number may stand for another file, and nothing must be written into that
        // one.
        let are_made = (0..processors).all(|processor| memory.buffer(processor).is_initialised());
        if are_made { Ok(memory) } else { Err(MemoryError::NotMade) }
    }

    /// The memory file, for a producer in another process.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Buffers for Memory {
    fn processors(&self) -> usize {
        self.processors
    }

    fn buffer(&self, processor: usize) -> Buffer<'_> {
        assert!(processor < self.processors, "there is no buffer for processor {processor}");
        let bytes = area_bytes(self.size_log2);
        let words = self.mapping.words(processor * bytes, bytes / 8);
        Buffer::new(words).expect("the size was checked when the memory was made")
    }

    fn not_locked(&self) -> Option<String> {
        let refused = self.lock.err()?;
        Some(format!("the kernel refused to lock the buffers ({refused}); raise `ulimit -l`"))
    }
}

/// Bytes of all areas, if both numbers are in range.
fn checked_bytes(processors: usize, size_log2: u32) -> Result<usize, MemoryError> {
    let sizes = layout::MIN_SIZE_LOG2..=layout::MAX_SIZE_LOG2;
    if sizes.contains(&size_log2) && (1..=4096).contains(&processors) {
        Ok(processors * area_bytes(size_log2))
    } else {
        Err(MemoryError::Size { size_log2, processors })
    }
}

#[cfg(test)]
mod tests {
    use mete_log::sealed::SEALS;
    use rustix::fs::MemfdFlags;

    use super::*;

    const PROCESSORS: usize = 2;
    const SIZE_LOG2: u32 = layout::MIN_SIZE_LOG2;

    fn file(bytes: u64, seals: SealFlags) -> OwnedFd {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("mete-test", flags).unwrap();
        rustix::fs::ftruncate(&file, bytes).unwrap();
        rustix::fs::fcntl_add_seals(&file, seals).unwrap();
        file
    }

    fn join(file: OwnedFd) -> Result<Memory, MemoryError> {
        Memory::join(file, PROCESSORS, SIZE_LOG2)
    }

    #[test]
    fn klog_8_buffers_that_could_change_under_a_program_are_refused() {
        let bytes = (PROCESSORS * area_bytes(SIZE_LOG2)) as u64;
        let memory = Memory::new(PROCESSORS, SIZE_LOG2, 50).unwrap();
        let again = || rustix::io::fcntl_dupfd_cloexec(memory.fd(), 3).unwrap();
        assert!(join(again()).is_ok());
        let other_size = Memory::join(again(), PROCESSORS + 1, SIZE_LOG2);
        assert!(
            matches!(other_size, Err(MemoryError::Sealed(SealedError::WrongSize { found, .. })) if found == bytes),
            "{other_size:?}"
        );
        assert!(matches!(Memory::join(again(), 0, SIZE_LOG2), Err(MemoryError::Size { .. })));

        for missing in [SealFlags::SHRINK, SealFlags::GROW, SealFlags::SEAL] {
            let found = join(file(bytes, SEALS.difference(missing)));
            assert!(
                matches!(found, Err(MemoryError::Sealed(SealedError::NotSealed { .. }))),
                "without {missing:?}: {found:?}"
            );
        }
        for wrong in [0, bytes - 4096, bytes + 4096] {
            let found = join(file(wrong, SEALS));
            assert!(
                matches!(found, Err(MemoryError::Sealed(SealedError::WrongSize { .. }))),
                "{wrong}: {found:?}"
            );
        }
        assert!(matches!(join(file(bytes, SEALS)), Err(MemoryError::NotMade)));
        let ordinary = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        let device = std::fs::File::open("/dev/null").unwrap();
        let (pipe, _) = rustix::pipe::pipe().unwrap();
        for other in [ordinary.into(), device.into(), pipe] {
            let found = join(other);
            assert!(matches!(found, Err(MemoryError::Sealed(SealedError::NotMemory))), "{found:?}");
        }
    }
}
