//! What a recorder hands to the programs that it starts, so that they record their own events: the buffers, and a
//! memory file that says how large these are, which clock is used, and which events have which numbers.
//!
//! Both descriptors are inherited, their numbers in the environment. So whoever is started by the recorder may take
//! part, nobody else, and nothing is left behind. Programs have buffers of their own, beside the kernel's: one that is
//! killed in the middle of a record, or writes what it likes, harms no other's events.
//!
//! ```text
//!   0   magic                           64 bits
//!   8   processors, log2 of the bytes   32 bits each
//!   16  clock, events                   32 bits each; clocks: 0 counter, 1 CLOCK_MONOTONIC
//!   24  for each event: fingerprint     64 bits
//!                       number, is on   32 bits each
//! ```
//!
//! This file is the one definition; `include/mete_recorder.h` says the same in C, and a test holds the two together.
//! Programs know events by their fingerprints: the numbers are those of the recorded schema, which may have other files
//! than the one that a program's encoders were made from.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::SealFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::mm::ProtFlags;

use crate::description::ClockSource;
use crate::memory::{self, Buffers, Memory, MemoryError, READ_AND_WRITE};

/// The environment's variable: the numbers of the two descriptors, `3,4`; the invitation's is the first.
pub const VARIABLE: &str = "METE_RECORDER";
/// First word: "METEINV" and the version of this layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"METEINV\x01");
/// Bytes of the memory file.
pub const BYTES: usize = 20480;
/// Where the events begin.
pub const EVENTS_OFFSET: usize = 24;
/// Bytes of an event's entry.
pub const EVENT_BYTES: usize = 16;
/// A schema has no more events.
pub const MAX_EVENTS: usize = 1024;

const _: () = assert!(EVENTS_OFFSET + MAX_EVENTS * EVENT_BYTES <= BYTES);

/// A recorder's invitation to programs.
#[derive(Debug)]
pub struct Invitation {
    page: Page,
    file: OwnedFd,
    buffers: Arc<Memory>,
}

/// The memory of an invitation.
///
/// Invariant: `base` is a mapping of [`BYTES`] bytes until this is dropped.
#[derive(Debug)]
pub(crate) struct Page {
    base: NonNull<u8>,
}

// SAFETY: the mapping is reached as atomics alone.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    pub(crate) fn map(file: &OwnedFd, access: ProtFlags) -> Result<Page, MemoryError> {
        Ok(Page { base: memory::map(file, BYTES, access)? })
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many bytes are mapped as long as this lives (invariant), beginning on a page.
        unsafe { core::slice::from_raw_parts(self.base.cast().as_ptr(), BYTES / 8) }
    }

    /// The entries: fingerprint, and number with switch.
    pub(crate) fn events(&self) -> &[[AtomicU64; 2]] {
        let (entries, _) = self.words()[EVENTS_OFFSET / 8..].as_chunks();
        let count = (self.words()[2].load(Ordering::Relaxed) >> 32) as usize;
        &entries[..count.min(MAX_EVENTS)]
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and no view outlives `self`. A failure leaves it mapped.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), BYTES) };
    }
}

/// The second word of an event's entry.
const IS_ON: u64 = 1 << 32;

impl Invitation {
    /// An invitation to these buffers, for events by fingerprint and number. None is on.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] if the kernel refuses memory.
    pub fn new(
        buffers: Arc<Memory>,
        clock: ClockSource,
        events: &[(u64, u16)],
    ) -> Result<Invitation, MemoryError> {
        let file = memory::create("mete-invitation", BYTES)?;
        let page = Page::map(&file, READ_AND_WRITE)?;
        // From here on nobody can map it for writing.
        memory::seal(&file, SealFlags::FUTURE_WRITE | SealFlags::SEAL, BYTES)?;
        let invitation = Invitation { page, file, buffers };
        invitation.fill(clock, &events[..events.len().min(MAX_EVENTS)]);
        Ok(invitation)
    }

    fn fill(&self, clock: ClockSource, events: &[(u64, u16)]) {
        let words = self.page.words();
        let clock = u64::from(clock == ClockSource::Monotonic);
        let size_log2 = u64::from(self.buffers.buffer(0).capacity().trailing_zeros());
        words[1].store(self.buffers.processors() as u64 | size_log2 << 32, Ordering::Relaxed);
        words[2].store(clock | (events.len() as u64) << 32, Ordering::Relaxed);
        for (entry, (fingerprint, number)) in self.page.events().iter().zip(events) {
            entry[0].store(*fingerprint, Ordering::Relaxed);
            entry[1].store(u64::from(*number), Ordering::Relaxed);
        }
        words[0].store(MAGIC, Ordering::Release);
    }

    /// From now on these events are recorded, by their numbers, and no others. Programs notice at their next event.
    pub fn switch(&self, is_on: impl Fn(u16) -> bool) {
        for entry in self.page.events() {
            let number = entry[1].load(Ordering::Relaxed) as u16;
            entry[1].store(u64::from(number) | if is_on(number) { IS_ON } else { 0 }, Ordering::Relaxed);
        }
    }

    /// Lets programs that are started from now on inherit it; says what [`VARIABLE`] must be for them.
    ///
    /// # Errors
    ///
    /// What the kernel says if it refuses.
    pub fn hand_out(&self) -> io::Result<String> {
        let files = [self.file.as_fd(), self.buffers.fd()];
        for file in files {
            fcntl_setfd(file, FdFlags::empty())?;
        }
        let [invitation, buffers] = files.map(|file| file.as_raw_fd());
        Ok(format!("{invitation},{buffers}"))
    }
}
