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
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::SealFlags;
use rustix::mm::ProtFlags;

use crate::area::Area;
use crate::bindings::{self, Bindings};
use crate::layout::{Shape, page_up};
use crate::sealed::{Mapping, SealedError};

/// Why a region could not be made or mapped.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// No processor, or more than the limit.
    #[error("a log region for {processors} processors: must be 1 to 4096")]
    Processors {
        /// The number asked for.
        processors: usize,
    },
    /// Its memory cannot be had, or the offered memory is refused.
    #[error("no log region: {0}")]
    Memory(#[from] SealedError),
}

/// The shared memory of one component. See the [module](self).
///
/// Invariant: the mapping is of [`Region::bytes_for`] bytes of `file`, for this shape and number of
/// processors.
#[derive(Debug)]
pub struct Region {
    mapping: Mapping,
    shape: Shape,
    processors: usize,
    file: OwnedFd,
}

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
        let (file, mapping) = Mapping::create("mete-log", bytes, SealFlags::empty())?;
        let region = Region { mapping, shape, processors, file };
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
        let bytes = checked_bytes(shape, processors)?;
        let mapping = Mapping::join(&file, bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Region { mapping, shape, processors, file })
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
        let bytes = checked_bytes(shape, processors)?;
        // SAFETY: passed on from the caller.
        let mapping = unsafe { Mapping::join_at(&file, bytes, at)? };
        Ok(Region { mapping, shape, processors, file })
    }

    /// The log area of a processor; the number is taken modulo the number of processors.
    pub fn area(&self, processor: usize) -> Area<'_> {
        let offset = areas_offset() + (processor % self.processors) * self.shape.area_bytes();
        // SAFETY: the area is inside the mapping, page-aligned, and mapped as long as `self` lives
        // (invariant).
        unsafe { Area::new(self.base().byte_add(offset), self.shape) }
    }

    /// The areas of all processors, in order.
    pub fn areas(&self) -> impl ExactSizeIterator<Item = Area<'_>> {
        (0..self.processors).map(|processor| self.area(processor))
    }

    /// The table of bindings.
    pub fn bindings(&self) -> Bindings<'_> {
        Bindings::new(self.mapping.words(0, bindings::SLOTS))
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
        self.mapping.bytes()
    }

    /// The address at which the region is mapped.
    pub fn base(&self) -> NonNull<u8> {
        self.mapping.base()
    }

    /// The memory file, to hand to a component.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Closes the file but leaves the memory mapped for ever, for a component whose threads can be in the
    /// middle of a row.
    pub fn leave_mapped(self) {
        core::mem::forget(self.mapping);
    }
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
