//! The recording buffers: an eBPF array that is mapped into this process.

use std::sync::atomic::AtomicU64;

use libbpf_rs::Object;
use mete_trace::layout::{self, area_bytes};
use mete_trace::{Buffer, Buffers};

use super::maps::{BUFFERS, with_map};
use crate::KernelError;
use crate::map::Mapping;

/// One buffer for each possible processor.
pub struct Areas {
    mapping: Mapping,
    processors: usize,
    size_log2: u32,
}

impl Areas {
    /// Maps the buffers of an object and writes their headers.
    pub(super) fn new(
        object: &Object,
        processors: usize,
        size_log2: u32,
        low_water_percent: u8,
    ) -> Result<Areas, KernelError> {
        let mapping = with_map(object, BUFFERS, |map| map.mapped(processors * area_bytes(size_log2)))?;
        let areas = Areas { mapping, processors, size_log2 };
        for processor in 0..processors {
            areas.buffer(processor).initialise(processor as u32, low_water_percent);
        }
        Ok(areas)
    }
}

impl Buffers for Areas {
    fn processors(&self) -> usize {
        self.processors
    }

    fn buffer(&self, processor: usize) -> Buffer<'_> {
        assert!(processor < self.processors, "there are {} buffers", self.processors);
        let bytes = area_bytes(self.size_log2);
        // SAFETY: the mapping is not null, holds whole areas, of which each begins on a page, and outlives
        // the view. Every access on this side is atomic.
        let area = unsafe {
            let area = self.mapping.base().as_ptr().byte_add(processor * bytes).cast::<AtomicU64>();
            std::slice::from_raw_parts(area, bytes / 8)
        };
        let sizes = layout::MIN_SIZE_LOG2..=layout::MAX_SIZE_LOG2;
        debug_assert!(sizes.contains(&self.size_log2));
        Buffer::new(area).unwrap_or_else(|| unreachable!("the size was checked before the buffers were made"))
    }

    /// The memory of eBPF maps belongs to the kernel and is never paged out.
    fn not_locked(&self) -> Option<String> {
        None
    }
}
