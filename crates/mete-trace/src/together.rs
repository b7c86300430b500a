//! Several sets of buffers as one: those of the kernel's programs, those into which programs write
//! themselves, and those for events that are gathered from programs.
//!
//! They are separate for two reasons. A program can be stopped or killed in the middle of a record, which
//! blocks all records after it, and it may write bad data. And gathered events are recorded later than they
//! happened, so that no other event would be in order between them.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::memory::{Buffers, Memory};

/// The kernel's buffers, programs' own buffers, buffers of gathered events, or several of these, in this
/// order.
#[derive(Debug)]
pub struct Together<B> {
    kernel: Option<Arc<B>>,
    programs: Option<Arc<Memory>>,
    gathered: Option<Arc<Memory>>,
}

/// Positions among the [owners](Together::owners) of buffers.
const KERNEL: usize = 0;
const GATHERED: usize = 2;

impl<B: Buffers> Together<B> {
    /// One buffer for each processor, of the kernel, of programs, or of both.
    pub fn new(kernel: Option<Arc<B>>, programs: Option<Arc<Memory>>) -> Together<B> {
        Together { kernel, programs, gathered: None }
    }

    /// Adds buffers that one thread fills with the events that it has gathered: see [`Buffers::is_gathered`].
    pub fn with_gathered(self, gathered: Option<Arc<Memory>>) -> Together<B> {
        Together { gathered, ..self }
    }

    /// The owners of buffers, in order.
    fn owners(&self) -> [Option<&dyn Buffers>; 3] {
        let kernel = self.kernel.as_deref().map(|buffers| buffers as &dyn Buffers);
        let [programs, gathered] = [&self.programs, &self.gathered].map(Option::as_deref);
        [kernel, programs.map(|buffers| buffers as _), gathered.map(|buffers| buffers as _)]
    }

    /// The owner of a buffer: its position among the [owners](Together::owners), and the buffer's among that
    /// owner's.
    fn owner(&self, buffer: usize) -> Option<(usize, usize)> {
        let mut place = buffer;
        self.owners().iter().enumerate().find_map(|(nth, owner)| {
            let buffers = owner.map_or(0, |owner| owner.processors());
            let found = (place < buffers).then_some((nth, place));
            place = place.saturating_sub(buffers);
            found
        })
    }
}

impl<B: Buffers> Buffers for Together<B> {
    fn processors(&self) -> usize {
        self.owners().into_iter().flatten().map(|owner| owner.processors()).sum()
    }

    fn buffer(&self, processor: usize) -> Buffer<'_> {
        let found = self.owner(processor).and_then(|(nth, place)| Some(self.owners()[nth]?.buffer(place)));
        found.unwrap_or_else(|| panic!("there is no buffer {processor}"))
    }

    fn programs_of(&self, buffer: usize) -> Option<u32> {
        let (nth, place) = self.owner(buffer).filter(|(nth, _)| *nth != KERNEL)?;
        let is_beside = self.owners()[..nth].iter().any(Option::is_some);
        is_beside.then_some(place as u32)
    }

    fn is_gathered(&self, buffer: usize) -> bool {
        self.owner(buffer).is_some_and(|(nth, _)| nth == GATHERED)
    }

    fn not_locked(&self) -> Option<String> {
        self.owners().into_iter().flatten().find_map(|owner| owner.not_locked())
    }
}
