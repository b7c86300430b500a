//! The memory of recording buffers: one area for each processor, in a sealed memory file that other processes can map.
//! It is locked, so that recording never waits for a page (KLogger §5.1).

use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::buffer::Buffer;
use crate::layout::{self, area_bytes};

/// Buffers for processors, in any kind of memory: a [`Memory`], or a mapped eBPF array.
pub trait Buffers: Send + Sync + 'static {
    /// The number of buffers.
    fn processors(&self) -> usize;

    /// The buffer of one processor, `0..processors()`.
    fn buffer(&self, processor: usize) -> Buffer<'_>;

    /// The processor on which the programs run whose own events go into this buffer; `None` if this is one of the
    /// kernel's buffers, or if the kernel has none.
    fn programs_of(&self, buffer: usize) -> Option<u32> {
        let _ = buffer;
        None
    }

    /// Whether a single producer fills this buffer, in order of time, with events that happened earlier. Marks of the
    /// present moment would be out of order there. So flushes leave no marks in it, and the producer itself
    /// [marks](crate::switch::mark) events that are switched.
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
    /// The file is no memory file of ordinary pages, so that access to it could fail.
    #[error("the offered recording buffers are not in an ordinary memory file; refused")]
    NotMemory,
    /// The size of the file could still change while a process has it mapped.
    #[error("the offered recording buffers are not sealed against resizing (they have {found:?}); refused")]
    NotSealed {
        /// The seals that the file has.
        found: SealFlags,
    },
    /// The size of the file does not fit the buffers that it is said to hold.
    #[error("the offered recording buffers have {found} bytes and should have {wanted}; refused")]
    WrongSize {
        /// Bytes that the file has.
        found: u64,
        /// Bytes that it should have.
        wanted: usize,
    },
    /// No recorder has written the buffers' headers.
    #[error("the offered recording buffers were not made by a recorder of this version; refused")]
    NotMade,
    /// The kernel refused.
    #[error("cannot {what} {bytes} bytes for recording buffers: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// How much memory.
        bytes: usize,
        /// The kernel's answer.
        source: Errno,
    },
}

/// Recording buffers in a memory file.
///
/// Invariant: `base` is a shared mapping of `processors` areas of `area_bytes(size_log2)` bytes of `file`. Its seals
/// keep the file that long until the value is dropped.
#[derive(Debug)]
pub struct Memory {
    base: NonNull<u8>,
    size_log2: u32,
    processors: usize,
    lock: Result<(), Errno>,
    file: OwnedFd,
}

// SAFETY: the mapping is accessed only through `Buffer`, whose access is atomic.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Buffers of `2^size_log2` bytes each, zeroed and locked, with their headers written. If locking is refused, they
    /// can be paged out, and [`Buffers::not_locked`] says so.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] if a number is out of range or the kernel refuses memory.
    pub fn new(processors: usize, size_log2: u32, low_water_percent: u8) -> Result<Memory, MemoryError> {
        let sizes = layout::MIN_SIZE_LOG2..=layout::MAX_SIZE_LOG2;
        if !sizes.contains(&size_log2) || !(1..=4096).contains(&processors) {
            return Err(MemoryError::Size { size_log2, processors });
        }
        let bytes = processors * area_bytes(size_log2);
        let file = create("mete-trace", bytes)?;
        seal(&file, SealFlags::SEAL, bytes)?;
        let base = map(&file, bytes, READ_AND_WRITE)?;
        // SAFETY: this is the mapping that was just made.
        let lock = unsafe { rustix::mm::mlock(base.as_ptr().cast(), bytes) };
        let memory = Memory { base, size_log2, processors, lock, file };
        for processor in 0..processors {
            memory.buffer(processor).initialise(processor as u32, low_water_percent);
        }
        Ok(memory)
    }

    /// The buffers of another process, in the file that it made for them.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] if [`Memory::new`] does not make such a file for these numbers, or if it cannot be mapped.
    pub(crate) fn join(file: OwnedFd, processors: usize, size_log2: u32) -> Result<Memory, MemoryError> {
        let sizes = layout::MIN_SIZE_LOG2..=layout::MAX_SIZE_LOG2;
        if !sizes.contains(&size_log2) || !(1..=4096).contains(&processors) {
            return Err(MemoryError::Size { size_log2, processors });
        }
        let bytes = processors * area_bytes(size_log2);
        check(&file, bytes)?;
        let base = map(&file, bytes, READ_AND_WRITE)?;
        let memory = Memory { base, size_log2, processors, lock: Ok(()), file };
        // By now the descriptor's number may stand for another file, and nothing must be written into that one.
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
        // SAFETY: the area is inside the mapping (checked above), aligned to a page, mapped as long as `self` lives
        // (invariant), and accessed as atomics only.
        let words = unsafe {
            let first = self.base.byte_add(processor * bytes).cast::<AtomicU64>();
            core::slice::from_raw_parts(first.as_ptr(), bytes / 8)
        };
        Buffer::new(words).expect("the size was checked when the memory was made")
    }

    fn not_locked(&self) -> Option<String> {
        let refused = self.lock.err()?;
        Some(format!("the kernel refused to lock the buffers ({refused}); raise `ulimit -l`"))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let bytes = self.processors * area_bytes(self.size_log2);
        // SAFETY: the mapping is ours and no view outlives `self`. If unmapping fails, it stays mapped.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), bytes) };
    }
}

/// The seals of buffers and invitations: their size is final.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

pub(crate) const READ_AND_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// A memory file whose size is final.
pub(crate) fn create(name: &str, bytes: usize) -> Result<OwnedFd, MemoryError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create(name, flags).map_err(failed("create a file of", bytes))?;
    rustix::fs::ftruncate(&file, bytes as u64).map_err(failed("make room for", bytes))?;
    seal(&file, SealFlags::SHRINK | SealFlags::GROW, bytes)?;
    Ok(file)
}

/// Checks that a file is one that [`create`] makes, and can no longer change. A process that accesses a mapping whose
/// file was cut is killed.
pub(crate) fn check(file: &OwnedFd, bytes: usize) -> Result<(), MemoryError> {
    /// The file system of memory files with ordinary pages. Access to huge pages can fail.
    const TMPFS: i128 = 0x0102_1994;
    let found = rustix::fs::fstat(file).map_err(failed("look at", bytes))?;
    let is_file = rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::RegularFile;
    let system = rustix::fs::fstatfs(file).map_err(failed("look at", bytes))?;
    if !is_file || i128::from(system.f_type) != TMPFS {
        return Err(MemoryError::NotMemory);
    }
    let seals = rustix::fs::fcntl_get_seals(file).map_err(|_| MemoryError::NotMemory)?;
    if !seals.contains(SEALS) {
        return Err(MemoryError::NotSealed { found: seals });
    }
    // Read after the seals: from here on the length cannot change.
    let length = rustix::fs::fstat(file).map_err(failed("look at", bytes))?.st_size as u64;
    if length != bytes as u64 { Err(MemoryError::WrongSize { found: length, wanted: bytes }) } else { Ok(()) }
}

pub(crate) fn seal(file: &OwnedFd, seals: SealFlags, bytes: usize) -> Result<(), MemoryError> {
    rustix::fs::fcntl_add_seals(file, seals).map_err(failed("seal", bytes))
}

/// Makes an error of the kernel's answer.
fn failed(what: &'static str, bytes: usize) -> impl Fn(Errno) -> MemoryError {
    move |source| MemoryError::System { what, bytes, source }
}

/// Maps the beginning of a file, shared.
pub(crate) fn map(file: &OwnedFd, bytes: usize, access: ProtFlags) -> Result<NonNull<u8>, MemoryError> {
    // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
    let base = unsafe { rustix::mm::mmap(core::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0) };
    let base = base.and_then(|base| NonNull::new(base.cast()).ok_or(Errno::NOMEM));
    base.map_err(failed("map", bytes))
}

#[cfg(test)]
mod tests {
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
            matches!(other_size, Err(MemoryError::WrongSize { found, .. }) if found == bytes),
            "{other_size:?}"
        );
        assert!(matches!(Memory::join(again(), 0, SIZE_LOG2), Err(MemoryError::Size { .. })));

        for missing in [SealFlags::SHRINK, SealFlags::GROW, SealFlags::SEAL] {
            let found = join(file(bytes, SEALS.difference(missing)));
            assert!(matches!(found, Err(MemoryError::NotSealed { .. })), "without {missing:?}: {found:?}");
        }
        for wrong in [0, bytes - 4096, bytes + 4096] {
            let found = join(file(wrong, SEALS));
            assert!(matches!(found, Err(MemoryError::WrongSize { .. })), "{wrong}: {found:?}");
        }
        assert!(matches!(join(file(bytes, SEALS)), Err(MemoryError::NotMade)));
        let ordinary = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        let device = std::fs::File::open("/dev/null").unwrap();
        let (pipe, _) = rustix::pipe::pipe().unwrap();
        for other in [ordinary.into(), device.into(), pipe] {
            let found = join(other);
            assert!(matches!(found, Err(MemoryError::NotMemory)), "{found:?}");
        }
    }
}
