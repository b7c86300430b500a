//! Sealed memory files: memory that processes share, and whose size is final (design decision D7).
//!
//! If a process could shrink the file, an access to it would kill the other processes that have it mapped. So
//! the side that makes a file seals it before it hands it over, and the side that takes it checks that.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// The seals that a file must have: its size is final.
pub const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);
/// Why a file could not be made, or is refused.
#[derive(Debug, thiserror::Error)]
pub enum SealedError {
    /// The file is no memory file of ordinary pages, so that an access to it could fail.
    #[error("the offered memory is not in an ordinary memory file; refused")]
    NotMemory,
    /// The size of the file could still change while a process has it mapped.
    #[error("the offered memory is not sealed against resizing (it has {found:?}); refused")]
    NotSealed {
        /// The seals that it has.
        found: SealFlags,
    },
    /// The size of the file does not fit what it is said to hold.
    #[error("the offered memory has {found} bytes and should have {wanted}; refused")]
    WrongSize {
        /// Bytes that it has.
        found: u64,
        /// Bytes that it should have.
        wanted: usize,
    },
    /// The kernel refused.
    #[error("cannot {what} {bytes} bytes of shared memory: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// How much memory.
        bytes: usize,
        /// The kernel's answer.
        source: Errno,
    },
}

/// Makes an error of the kernel's answer.
fn failed(what: &'static str, bytes: usize) -> impl Fn(Errno) -> SealedError {
    move |source| SealedError::System { what, bytes, source }
}

/// Checks that a file is a sealed memory file of this size.
fn check(file: &OwnedFd, bytes: usize) -> Result<(), SealedError> {
    /// The file system of memory files with ordinary pages. Access to huge pages can fail.
    const TMPFS: i128 = 0x0102_1994;
    let look = || rustix::fs::fstat(file).map_err(failed("look at", bytes));
    let system = rustix::fs::fstatfs(file).map_err(failed("look at", bytes))?;
    let is_file = FileType::from_raw_mode(look()?.st_mode) == FileType::RegularFile;
    if !is_file || i128::from(system.f_type) != TMPFS {
        return Err(SealedError::NotMemory);
    }
    let found = rustix::fs::fcntl_get_seals(file).map_err(|_| SealedError::NotMemory)?;
    if !found.contains(SEALS) {
        return Err(SealedError::NotSealed { found });
    }
    // Read after the seals: from here on the length cannot change.
    let found = look()?.st_size as u64;
    if found == bytes as u64 { Ok(()) } else { Err(SealedError::WrongSize { found, wanted: bytes }) }
}

/// A memory file that cannot be executed: some systems insist on that. Kernels before 6.3 do not know the
/// flag.
fn create_file(name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags),
        created => created,
    }
}

/// A shared mapping of a file's beginning. Dropped, it is unmapped.
///
/// Invariant: `base` begins a mapping of `bytes` bytes that belongs to this value. The file's seals keep it
/// whole.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is accessed as atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// A new memory file of this size, with these seals in addition to [`SEALS`], and a mapping of it for
    /// reading and writing. A page takes memory only once it is touched.
    ///
    /// # Errors
    ///
    /// [`SealedError::System`]
    pub fn create(name: &str, bytes: usize, more: SealFlags) -> Result<(OwnedFd, Mapping), SealedError> {
        let file = create_file(name).map_err(failed("create a file of", bytes))?;
        rustix::fs::ftruncate(&file, bytes as u64).map_err(failed("make room for", bytes))?;
        // SAFETY: as in `join`. The mapping comes first, because a seal may forbid later ones to write.
        let mapping = unsafe { Mapping::map(&file, bytes, ProtFlags::READ | ProtFlags::WRITE, None)? };
        rustix::fs::fcntl_add_seals(&file, SEALS | more).map_err(failed("seal", bytes))?;
        Ok((file, mapping))
    }

    /// Maps a file that another process has made, after checking its seals and its size.
    ///
    /// # Errors
    ///
    /// [`SealedError`]
    pub fn join(file: &OwnedFd, bytes: usize, access: ProtFlags) -> Result<Mapping, SealedError> {
        check(file, bytes)?;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
        unsafe { Mapping::map(file, bytes, access, None) }
    }

    /// The same for reading and writing, over a range of addresses that the caller has reserved.
    ///
    /// # Safety
    ///
    /// `at` must be page-aligned and begin a mapping of at least `bytes` bytes that belongs to the caller and
    /// that no code needs any more.
    ///
    /// # Errors
    ///
    /// [`SealedError`]
    pub unsafe fn join_at(file: &OwnedFd, bytes: usize, at: NonNull<u8>) -> Result<Mapping, SealedError> {
        check(file, bytes)?;
        // SAFETY: passed on from the caller.
        unsafe { Mapping::map(file, bytes, ProtFlags::READ | ProtFlags::WRITE, Some(at)) }
    }

    unsafe fn map(
        file: &OwnedFd,
        bytes: usize,
        access: ProtFlags,
        at: Option<NonNull<u8>>,
    ) -> Result<Mapping, SealedError> {
        let address = at.map_or(core::ptr::null_mut(), |at| at.as_ptr().cast());
        let flags = if at.is_some() { MapFlags::SHARED | MapFlags::FIXED } else { MapFlags::SHARED };
        // SAFETY: passed on from the caller.
        let base = unsafe { rustix::mm::mmap(address, bytes, access, flags, file, 0) };
        // A mapping at address zero would be one that no pointer can name.
        let base = base.and_then(|base| NonNull::new(base.cast()).ok_or(Errno::NOMEM));
        Ok(Mapping { base: base.map_err(failed("map", bytes))?, bytes })
    }

    /// Where it begins.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The words from byte `at` on.
    ///
    /// # Panics
    ///
    /// If `at` is no multiple of 8, or the mapping ends before the words do.
    pub fn words(&self, at: usize, count: usize) -> &[AtomicU64] {
        let is_inside = at <= self.bytes && count <= (self.bytes - at) / 8;
        assert!(at.is_multiple_of(8) && is_inside, "{count} words from byte {at} on");
        // SAFETY: the words are inside the mapping (checked above), aligned, mapped as long as `self` lives
        // (invariant), and accessed as atomics only.
        unsafe { core::slice::from_raw_parts(self.base.byte_add(at).cast().as_ptr(), count) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and no view outlives `self`. If the kernel refuses, the
        // range stays mapped, which does no harm.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
