//! A region: the shared memory of one component, with one log area for each processor (LOG-9, LOG-12).
//!
//! ```text
//!   bindings   32 KiB: pid → domain, written by the scheduler
//!   area 0     Shape::area_bytes() each
//!   area 1
//!   …
//! ```
//!
//! The scheduler creates it as a sealed memory file (design decision D7) and hands over the file descriptor.
//! The seals matter to the component: if the creator could shrink the memory, an access to it would kill the
//! process.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::area::Area;
use crate::bindings::{self, Bindings};
use crate::layout::{Shape, page_up};

/// The seals that a region must have: its size is final.
pub const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Why a region could not be made or mapped.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// No processor, or more than the limit.
    #[error("a log region for {processors} processors: must be 1 to 4096")]
    Processors {
        /// The number asked for.
        processors: usize,
    },
    /// The kernel refused memory.
    #[error("cannot {what} a log region of {bytes} bytes: {source}")]
    System {
        /// The step that was tried.
        what: &'static str,
        /// The size of the region.
        bytes: usize,
        /// The kernel's answer.
        source: rustix::io::Errno,
    },
    /// The memory file could still change its size while it is in use.
    #[error("the offered log memory is not sealed against resizing (it has {found:?}); refused")]
    NotSealed {
        /// The seals that it has.
        found: SealFlags,
    },
    /// The memory file is smaller or larger than the shape that came with it requires.
    #[error("the offered log memory has {found} bytes, but its shape needs {wanted}; refused")]
    WrongSize {
        /// Bytes that it has.
        found: u64,
        /// Bytes that it should have.
        wanted: usize,
    },
}

/// The shared memory of one component. See the [module](self).
///
/// Invariant: `base` is a shared mapping of `bytes` bytes of `file` until the value is dropped. The file's
/// seals keep it that long.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    bytes: usize,
    shape: Shape,
    processors: usize,
    file: OwnedFd,
}

// SAFETY: the mapping is reached only through `Area` and `Bindings`, whose access is atomic.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// The size of a region in bytes.
    pub const fn bytes_for(shape: Shape, processors: usize) -> usize {
        areas_offset() + shape.area_bytes() * processors
    }

    /// Makes a region: zeroed, sealed and mapped, with the headers of its areas written. A page takes memory
    /// only once it is touched.
    ///
    /// # Errors
    ///
    /// [`RegionError`] if the number of processors is out of range or the kernel refuses.
    pub fn create(shape: Shape, processors: usize) -> Result<Region, RegionError> {
        let bytes = checked_bytes(shape, processors)?;
        let file = create_file().map_err(system("create", bytes))?;
        rustix::fs::ftruncate(&file, bytes as u64).map_err(system("size", bytes))?;
        // Sealed before it is mapped or handed over: no process ever sees it with another size.
        rustix::fs::fcntl_add_seals(&file, SEALS).map_err(system("seal", bytes))?;
        let region = Region::map(file, shape, processors, bytes, None)?;
        for (processor, area) in region.areas().enumerate() {
            area.initialise(processor as u32);
        }
        Ok(region)
    }

    /// Maps a region that another process made, after checking its seals and size.
    ///
    /// # Errors
    ///
    /// [`RegionError`] if it is not sealed, does not have that size, or cannot be mapped.
    pub fn attach(file: OwnedFd, shape: Shape, processors: usize) -> Result<Region, RegionError> {
        let bytes = check_offer(&file, shape, processors)?;
        Region::map(file, shape, processors, bytes, None)
    }

    /// As [`Region::attach`], but over a range of addresses that the caller has reserved.
    ///
    /// # Safety
    ///
    /// `at` must be page-aligned and begin a mapping of at least [`Region::bytes_for`] bytes that belongs to
    /// the caller and that no code needs any more. Dropping the region unmaps the range: see
    /// [`Region::leave_mapped`].
    ///
    /// # Errors
    ///
    /// As [`Region::attach`].
    pub unsafe fn attach_at(
        file: OwnedFd,
        shape: Shape,
        processors: usize,
        at: NonNull<u8>,
    ) -> Result<Region, RegionError> {
        let bytes = check_offer(&file, shape, processors)?;
        Region::map(file, shape, processors, bytes, Some(at))
    }

    fn map(
        file: OwnedFd,
        shape: Shape,
        processors: usize,
        bytes: usize,
        at: Option<NonNull<u8>>,
    ) -> Result<Region, RegionError> {
        let address = at.map_or(core::ptr::null_mut(), |at| at.as_ptr().cast());
        let fixed = if at.is_some() { MapFlags::FIXED } else { MapFlags::empty() };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: this is a new mapping, or one over a range that the caller of `attach_at` has given away.
        let base =
            unsafe { rustix::mm::mmap(address, bytes, protection, MapFlags::SHARED | fixed, &file, 0) };
        // A mapping at address zero would be one that no pointer can name.
        let base = base.and_then(|base| NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM));
        let base = base.map_err(system("map", bytes))?;
        Ok(Region { base, bytes, shape, processors, file })
    }

    /// The log area of a processor; the number is taken modulo the number of processors.
    pub fn area(&self, processor: usize) -> Area<'_> {
        let offset = areas_offset() + (processor % self.processors) * self.shape.area_bytes();
        // SAFETY: the area is inside the mapping, page-aligned, and mapped as long as `self` lives
        // (invariant).
        unsafe { Area::new(self.base.byte_add(offset), self.shape) }
    }

    /// The areas of all processors, in order.
    pub fn areas(&self) -> impl ExactSizeIterator<Item = Area<'_>> {
        (0..self.processors).map(|processor| self.area(processor))
    }

    /// The table of bindings.
    pub fn bindings(&self) -> Bindings<'_> {
        // SAFETY: the table comes first in the mapping. It is aligned to a page and consists of atomic words.
        let slots =
            unsafe { core::slice::from_raw_parts(self.base.cast::<AtomicU64>().as_ptr(), bindings::SLOTS) };
        Bindings::new(slots)
    }

    /// Number of processors.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// The areas' shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Bytes of the whole region.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address at which the region is mapped.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// The memory file, to hand to a component.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Closes the file but leaves the memory mapped for ever, for a component whose threads can be in the
    /// middle of a row.
    pub fn leave_mapped(self) {
        let this = core::mem::ManuallyDrop::new(self);
        // SAFETY: `file` is not used again: `this` is never dropped, and it goes out of reach here.
        drop(unsafe { core::ptr::read(&this.file) });
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and no view outlives `self` (lifetimes of `Area`,
        // `Bindings`). If the kernel refuses, the range stays mapped, which does no harm.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// A memory file that cannot be executed: some systems insist on that. Kernels before 6.3 do not know the
/// flag.
fn create_file() -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match rustix::fs::memfd_create("mete-log", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(rustix::io::Errno::INVAL) => rustix::fs::memfd_create("mete-log", flags),
        created => created,
    }
}

/// Says which step failed, and for how much memory.
fn system(what: &'static str, bytes: usize) -> impl Fn(rustix::io::Errno) -> RegionError {
    move |source| RegionError::System { what, bytes, source }
}

/// The offset of the first area in a region.
pub const fn areas_offset() -> usize {
    page_up(bindings::BYTES)
}

/// The size of a region, if the number of processors is in range.
fn checked_bytes(shape: Shape, processors: usize) -> Result<usize, RegionError> {
    if (1..=4096).contains(&processors) {
        Ok(Region::bytes_for(shape, processors))
    } else {
        Err(RegionError::Processors { processors })
    }
}

/// The size of an offered region, once its seals and its size are as they must be.
fn check_offer(file: &OwnedFd, shape: Shape, processors: usize) -> Result<usize, RegionError> {
    let bytes = checked_bytes(shape, processors)?;
    // A file that cannot have seals answers with an error, so it has none.
    let found = rustix::fs::fcntl_get_seals(file).unwrap_or(SealFlags::empty());
    if !found.contains(SEALS) {
        return Err(RegionError::NotSealed { found });
    }
    let size = rustix::fs::fstat(file).map_err(system("inspect", bytes))?.st_size as u64;
    if size == bytes as u64 { Ok(bytes) } else { Err(RegionError::WrongSize { found: size, wanted: bytes }) }
}
