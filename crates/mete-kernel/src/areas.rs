//! The log areas: an array map that is mapped into this process, with an area for each processor.

use mete_log::{Area, Shape};

use crate::KernelError;
use crate::map::{Mapping, NamedMap};
use crate::skeleton::mete::types::mete_area;

// The programs and this process see the same areas.
const _: () = assert!(size_of::<mete_area>() == Shape::KERNEL.area_bytes());

/// The mapped log areas of an object.
///
/// Invariant: the mapping has an area for each of `processors`.
pub(crate) struct LogAreas {
    mapping: Mapping,
    processors: usize,
}

impl LogAreas {
    /// Maps the areas and writes their headers.
    pub(crate) fn new(map: NamedMap<'_>, processors: usize) -> Result<LogAreas, KernelError> {
        let areas = LogAreas { mapping: map.mapped(processors * Shape::KERNEL.area_bytes())?, processors };
        for processor in 0..processors {
            areas.area(processor).initialise(processor as u32);
        }
        Ok(areas)
    }

    pub(crate) fn processors(&self) -> usize {
        self.processors
    }

    /// The area of one processor. The number is taken modulo the number of processors.
    pub(crate) fn area(&self, processor: usize) -> Area<'_> {
        let offset = processor % self.processors * Shape::KERNEL.area_bytes();
        // SAFETY: by the invariant, the mapping holds a whole area at this offset. It outlives the view,
        // areas begin on pages, and only `Area` accesses them.
        unsafe { Area::new(self.mapping.base().byte_add(offset), Shape::KERNEL) }
    }
}
