//! What a recorder hands to the programs that it starts, so that they record their own events: the buffers,
//! and a memory file that says how large these are, which clock is used, and which events have which numbers.
//!
//! A program inherits both descriptors and finds their numbers in its environment. So only programs that the
//! recorder has started can take part, and nothing is left behind. Programs have buffers of their own, beside
//! the kernel's. A program that is killed in the middle of a record, or that writes bad data, harms no events
//! of others.
//!
//! ```text
//!   0   magic                           64 bits
//!   8   processors, log2 of the bytes   32 bits each
//!   16  clock, events                   32 bits each; clocks: 0 counter, 1 CLOCK_MONOTONIC
//!   24  for each event: fingerprint     64 bits
//!                       number, is on   32 bits each
//! ```
//!
//! This file is the one definition. `include/mete_recorder.h` says the same in C, and a test compares the
//! two.
//!
//! Programs identify events by their fingerprints. The numbers are those of the recorded schema, which may
//! consist of other files than the schema from which a program's encoders were made.

use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use mete_log::sealed::{Mapping, SealedError};
use rustix::fs::SealFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::mm::ProtFlags;

use crate::description::ClockSource;
use crate::memory::{Buffers, Memory};

/// The environment variable. It has the numbers of the two descriptors, such as `3,4`; the invitation's comes
/// first.
pub const VARIABLE: &str = "METE_RECORDER";
/// First word: "METEINV" and the version of this layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"METEINV\x01");
/// Bytes of the memory file.
pub const BYTES: usize = 20480;
/// The offset of the first event's entry.
pub const EVENTS_OFFSET: usize = 24;
/// Bytes of an event's entry.
pub const EVENT_BYTES: usize = 16;
/// The most events that a schema can have.
pub const MAX_EVENTS: usize = 1024;

const _: () = assert!(EVENTS_OFFSET + MAX_EVENTS * EVENT_BYTES <= BYTES);

/// A recorder's invitation to programs.
#[derive(Debug)]
pub struct Invitation {
    page: InvitationPage,
    file: OwnedFd,
    buffers: Arc<Memory>,
}

/// The memory of an invitation: [`BYTES`] bytes.
#[derive(Debug)]
pub(crate) struct InvitationPage(Mapping);

impl InvitationPage {
    /// The invitation in a file that this program has inherited.
    pub(crate) fn join(file: &OwnedFd) -> Result<InvitationPage, SealedError> {
        Mapping::join(file, BYTES, ProtFlags::READ).map(InvitationPage)
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        self.0.words(0, BYTES / 8)
    }

    /// The entries: each has a fingerprint, and a number with its switch.
    pub(crate) fn events(&self) -> &[[AtomicU64; 2]] {
        let (entries, _) = self.words()[EVENTS_OFFSET / 8..].as_chunks();
        let count = (self.words()[2].load(Ordering::Relaxed) >> 32) as usize;
        // The count comes from shared memory, so it is limited here.
        &entries[..count.min(MAX_EVENTS)]
    }

    /// The position of the entry with this fingerprint.
    pub(crate) fn position(&self, fingerprint: u64) -> Option<usize> {
        self.events().iter().position(|entry| entry[0].load(Ordering::Relaxed) == fingerprint)
    }
}

/// In the second word of an event's entry: the event is on.
const IS_ON: u64 = 1 << 32;

impl Invitation {
    /// An invitation to these buffers, for events by fingerprint and number. All events are off.
    ///
    /// # Errors
    ///
    /// [`SealedError`] if the kernel refuses memory.
    pub fn new(
        buffers: Arc<Memory>,
        clock: ClockSource,
        events: &[(u64, u16)],
    ) -> Result<Invitation, SealedError> {
        // No other process can map it for writing. Our own mapping stays writable.
        let (file, page) = Mapping::create("mete-invitation", BYTES, SealFlags::FUTURE_WRITE)?;
        let invitation = Invitation { page: InvitationPage(page), file, buffers };
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
        // Last, with release: a program that sees it sees the other words.
        words[0].store(MAGIC, Ordering::Release);
    }

    /// From now on the events for whose numbers `is_on` holds are recorded, and no others. Programs see it at
    /// their next event.
    pub fn switch(&self, is_on: impl Fn(u16) -> bool) {
        for entry in self.page.events() {
            let number = entry[1].load(Ordering::Relaxed) as u16;
            entry[1].store(u64::from(number) | if is_on(number) { IS_ON } else { 0 }, Ordering::Relaxed);
        }
    }

    /// Lets programs that are started from now on inherit the invitation. Returns the value of [`VARIABLE`]
    /// for them.
    ///
    /// # Errors
    ///
    /// The kernel's error if it refuses.
    pub fn hand_out(&self) -> io::Result<String> {
        let files = [self.file.as_fd(), self.buffers.fd()];
        for file in files {
            fcntl_setfd(file, FdFlags::empty())?;
        }
        let [invitation, buffers] = files.map(|file| file.as_raw_fd());
        Ok(format!("{invitation},{buffers}"))
    }
}
