//! Several sets of buffers as one: those of the kernel's programs, those into which programs write themselves, and
//! those for events that are gathered from programs.
//!
//! They are separate for two reasons. A program can be stopped or killed in the middle of a record, which blocks all
//! records after it, and it may write bad data. And gathered events are recorded later than they happened, so that no
//! other event would be in order between them.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::memory::{Buffers, Memory};

/// The kernel's buffers, programs' own buffers, buffers of gathered events, or several of these, in this order.
#[derive(Debug)]
pub struct Together<B> {
    kernel: Option<Arc<B>>,
    programs: Option<Arc<Memory>>,
    gathered: Option<Arc<Memory>>,
}

/// The owner of a buffer, and the buffer's position among that owner's.
enum BufferOwner {
    Kernel(usize),
    Programs(usize),
    Gathered(usize),
}

impl<B: Buffers> Together<B> {
    /// One buffer for each processor, of the kernel, of programs, or of both.
    pub fn new(kernel: Option<Arc<B>>, programs: Option<Arc<Memory>>) -> Together<B> {
        Together { kernel, programs, gathered: None }
    }

    /// Adds buffers that one thread fills with the events that it has gathered: see [`Buffers::is_gathered`].
    pub fn with_gathered(self, gathered: Option<Arc<Memory>>) -> Together<B> {
        Together { gathered, ..self }
    }

    fn kernel_buffers(&self) -> usize {
        self.kernel.as_ref().map_or(0, |kernel| kernel.processors())
    }

    fn programs_buffers(&self) -> usize {
        self.programs.as_ref().map_or(0, |programs| programs.processors())
    }

    fn owner(&self, buffer: usize) -> BufferOwner {
        let behind_kernel = buffer.checked_sub(self.kernel_buffers());
        match behind_kernel.map(|place| (place, place.checked_sub(self.programs_buffers()))) {
            None => BufferOwner::Kernel(buffer),
            Some((place, None)) => BufferOwner::Programs(place),
            Some((_, Some(place))) => BufferOwner::Gathered(place),
        }
    }
}

impl<B: Buffers> Buffers for Together<B> {
    fn processors(&self) -> usize {
        let gathered = self.gathered.as_ref().map_or(0, |gathered| gathered.processors());
        self.kernel_buffers() + self.programs_buffers() + gathered
    }

    fn buffer(&self, processor: usize) -> Buffer<'_> {
        let found = match self.owner(processor) {
            BufferOwner::Kernel(place) => self.kernel.as_ref().map(|kernel| kernel.buffer(place)),
            BufferOwner::Programs(place) => self.programs.as_ref().map(|programs| programs.buffer(place)),
            BufferOwner::Gathered(place) => self.gathered.as_ref().map(|gathered| gathered.buffer(place)),
        };
        found.unwrap_or_else(|| panic!("there is no buffer {processor}"))
    }

    fn programs_of(&self, buffer: usize) -> Option<u32> {
        let (place, is_beside) = match self.owner(buffer) {
            BufferOwner::Kernel(_) => return None,
            BufferOwner::Programs(place) => (place, self.kernel.is_some()),
            BufferOwner::Gathered(place) => (place, self.kernel.is_some() || self.programs.is_some()),
        };
        is_beside.then_some(place as u32)
    }

    fn is_gathered(&self, buffer: usize) -> bool {
        matches!(self.owner(buffer), BufferOwner::Gathered(_))
    }

    fn not_locked(&self) -> Option<String> {
        let of_programs = [&self.programs, &self.gathered].into_iter().flatten();
        let of_kernel = self.kernel.as_ref().and_then(|kernel| kernel.not_locked());
        of_kernel.or_else(|| of_programs.filter_map(|memory| memory.not_locked()).next())
    }
}
