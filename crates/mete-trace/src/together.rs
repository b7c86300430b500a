//! Buffers of the kernel's programs, and beside them those that programs write into themselves.
//!
//! They are apart because a program can be stopped or killed in the middle of a record, which holds up what comes
//! behind it, and may write what it likes.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::memory::{Buffers, Memory};

/// The kernel's buffers, programs' own, or both: those come first.
#[derive(Debug)]
pub struct Together<B> {
    kernel: Option<Arc<B>>,
    programs: Option<Arc<Memory>>,
}

impl<B: Buffers> Together<B> {
    /// One for each processor, of either or both.
    pub fn new(kernel: Option<Arc<B>>, programs: Option<Arc<Memory>>) -> Together<B> {
        Together { kernel, programs }
    }

    fn kernel_buffers(&self) -> usize {
        self.kernel.as_ref().map_or(0, |kernel| kernel.processors())
    }
}

impl<B: Buffers> Buffers for Together<B> {
    fn processors(&self) -> usize {
        self.kernel_buffers() + self.programs.as_ref().map_or(0, |programs| programs.processors())
    }

    fn buffer(&self, processor: usize) -> Buffer<'_> {
        match (&self.kernel, &self.programs) {
            (Some(kernel), _) if processor < kernel.processors() => kernel.buffer(processor),
            (_, Some(programs)) => programs.buffer(processor - self.kernel_buffers()),
            _ => panic!("there is no buffer {processor}"),
        }
    }

    fn programs_of(&self, buffer: usize) -> Option<u32> {
        let place = buffer.checked_sub(self.kernel_buffers());
        place.filter(|_| self.kernel.is_some()).map(|place| place as u32)
    }

    fn not_locked(&self) -> Option<String> {
        let programs = self.programs.as_ref().and_then(|programs| programs.not_locked());
        self.kernel.as_ref().and_then(|kernel| kernel.not_locked()).or(programs)
    }
}
