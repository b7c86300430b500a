//! Buffers of the kernel's programs, and beside them those that programs write into themselves, and those for what is
//! gathered from programs.
//!
//! They are apart because a program can be stopped or killed in the middle of a record, which holds up what comes
//! behind it, and may write what it likes; and because what is gathered comes later than it happened, so that nothing
//! else fits between it.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::memory::{Buffers, Memory};

/// The kernel's buffers, programs' own, those of what is gathered, or several of them, in this order.
#[derive(Debug)]
pub struct Together<B> {
    kernel: Option<Arc<B>>,
    programs: Option<Arc<Memory>>,
    gathered: Option<Arc<Memory>>,
}

/// Whose a buffer is, and its place among theirs.
enum Place {
    Kernel(usize),
    Programs(usize),
    Gathered(usize),
}

impl<B: Buffers> Together<B> {
    /// One for each processor, of either or both.
    pub fn new(kernel: Option<Arc<B>>, programs: Option<Arc<Memory>>) -> Together<B> {
        Together { kernel, programs, gathered: None }
    }

    /// And those that one thread fills with what it has gathered: see [`Buffers::is_gathered`].
    pub fn with_gathered(self, gathered: Option<Arc<Memory>>) -> Together<B> {
        Together { gathered, ..self }
    }

    fn kernel_buffers(&self) -> usize {
        self.kernel.as_ref().map_or(0, |kernel| kernel.processors())
    }

    fn programs_buffers(&self) -> usize {
        self.programs.as_ref().map_or(0, |programs| programs.processors())
    }

    fn place(&self, buffer: usize) -> Place {
        let behind_kernel = buffer.checked_sub(self.kernel_buffers());
        match behind_kernel.map(|place| (place, place.checked_sub(self.programs_buffers()))) {
            None => Place::Kernel(buffer),
            Some((place, None)) => Place::Programs(place),
            Some((_, Some(place))) => Place::Gathered(place),
        }
    }
}

impl<B: Buffers> Buffers for Together<B> {
    fn processors(&self) -> usize {
        let gathered = self.gathered.as_ref().map_or(0, |gathered| gathered.processors());
        self.kernel_buffers() + self.programs_buffers() + gathered
    }

    fn buffer(&self, processor: usize) -> Buffer<'_> {
        let found = match self.place(processor) {
            Place::Kernel(place) => self.kernel.as_ref().map(|kernel| kernel.buffer(place)),
            Place::Programs(place) => self.programs.as_ref().map(|programs| programs.buffer(place)),
            Place::Gathered(place) => self.gathered.as_ref().map(|gathered| gathered.buffer(place)),
        };
        found.unwrap_or_else(|| panic!("there is no buffer {processor}"))
    }

    fn programs_of(&self, buffer: usize) -> Option<u32> {
        let (place, is_beside) = match self.place(buffer) {
            Place::Kernel(_) => return None,
            Place::Programs(place) => (place, self.kernel.is_some()),
            Place::Gathered(place) => (place, self.kernel.is_some() || self.programs.is_some()),
        };
        is_beside.then_some(place as u32)
    }

    fn is_gathered(&self, buffer: usize) -> bool {
        matches!(self.place(buffer), Place::Gathered(_))
    }

    fn not_locked(&self) -> Option<String> {
        let of_programs = [&self.programs, &self.gathered].into_iter().flatten();
        let of_kernel = self.kernel.as_ref().and_then(|kernel| kernel.not_locked());
        of_kernel.or_else(|| of_programs.filter_map(|memory| memory.not_locked()).next())
    }
}
