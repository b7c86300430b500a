//! A program's way into the buffers of the recorder that has started it.
//!
//! ```no_run
//! use std::sync::LazyLock;
//! use mete_trace::Channel;
//!
//! // As `mete schema generate rust` has it for a schema's events: numbers in there, and fingerprints.
//! const EVENTS: [(u16, u64); 1] = [(16, 0x1234)];
//! static CHANNEL: LazyLock<Channel> = LazyLock::new(|| Channel::from_environment(&EVENTS));
//!
//! # let record = [0; 24];
//! CHANNEL.emit(&record);
//! ```

use core::sync::atomic::Ordering;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::mm::ProtFlags;

use crate::description::ClockSource;
use crate::invitation::{BYTES, MAGIC, Page, VARIABLE};
use crate::memory::{self, Buffers, Memory};
use crate::producer::{Outcome, Producer};
use crate::record::HEADER_BYTES;

/// Records of a schema have no more bytes.
const MOST_WORDS: usize = 256 / 8;
/// The number of the first event of a schema.
const FIRST_EVENT: u16 = 16;

/// Where a program's records go. Without a recorder, nowhere: that costs a branch.
#[derive(Debug)]
pub struct Channel(Option<Joined>);

#[derive(Debug)]
struct Joined {
    page: Page,
    buffers: Memory,
    clock: ClockSource,
    /// Where in the invitation each of the program's events is, in the order of their numbers there.
    places: Vec<Option<usize>>,
}

impl Channel {
    /// Joins the recorder that has started this program, if one has. `events` are the program's: the numbers in its
    /// records, and their fingerprints.
    ///
    /// An invitation that is none is as good as no recorder: a program goes on without.
    pub fn from_environment(events: &[(u16, u64)]) -> Channel {
        std::env::var(VARIABLE).map_or(Channel(None), |files| Channel::join(&files, events))
    }

    /// The same, where the variable is this.
    pub fn join(files: &str, events: &[(u16, u64)]) -> Channel {
        Channel(Joined::new(files, events))
    }

    /// Whether there is a recorder.
    pub fn is_joined(&self) -> bool {
        self.0.is_some()
    }

    /// Records what an encoder made, if the event is on. No lock, no system call but at the low-water mark.
    #[inline]
    pub fn emit(&self, record: &[u8]) {
        if let Some(joined) = &self.0
            && let Some(number) = joined.number(record)
        {
            joined.record(number, record);
        }
    }
}

/// A descriptor of one's own to what is inherited.
fn inherited(number: &str) -> Option<OwnedFd> {
    let number: RawFd = number.parse().ok().filter(|number| *number >= 0)?;
    // SAFETY: it is only duplicated, which fails if there is no such descriptor.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_dupfd_cloexec(file, 3).ok()
}

impl Joined {
    fn new(files: &str, events: &[(u16, u64)]) -> Option<Joined> {
        let (invitation, buffers) = files.split_once(',')?;
        let invitation = inherited(invitation)?;
        memory::check(&invitation, BYTES).ok()?;
        let page = Page::map(&invitation, ProtFlags::READ).ok()?;
        let word = |nth: usize| page.words()[nth].load(Ordering::Acquire);
        if word(0) != MAGIC {
            return None;
        }
        let (processors, size_log2) = (word(1) as u32, (word(1) >> 32) as u32);
        let clock = if word(2) as u32 == 0 { ClockSource::Counter } else { ClockSource::Monotonic };
        let buffers = Memory::join(inherited(buffers)?, processors as usize, size_log2).ok()?;
        let places = places(&page, events);
        Some(Joined { page, buffers, clock, places })
    }

    /// The recorder's number of a record's event, if that is on.
    #[inline]
    fn number(&self, record: &[u8]) -> Option<u16> {
        let own = u16::from_le_bytes(*record.first_chunk()?);
        let place = *self.places.get(usize::from(own.checked_sub(FIRST_EVENT)?))?;
        let word = self.page.events().get(place?)?[1].load(Ordering::Relaxed);
        (word >> 32 != 0).then_some(word as u16)
    }

    #[inline]
    fn record(&self, number: u16, record: &[u8]) {
        let processor = rustix::thread::sched_getcpu() % self.buffers.processors();
        let producer = Producer::new(self.buffers.buffer(processor));
        let mut words = [0; MOST_WORDS];
        let (fields, _) = record.get(HEADER_BYTES..).unwrap_or_default().as_chunks();
        for (word, field) in words.iter_mut().zip(fields) {
            *word = u64::from_le_bytes(*field);
        }
        let count = fields.len().min(MOST_WORDS);
        if producer.record(number, &words[..count], || self.clock.now()) == Outcome::WrittenAtMark {
            producer.call_flush();
        }
    }
}

/// Where each event is in the invitation. The page's words are copied by nobody: an event may be switched later.
fn places(page: &Page, events: &[(u16, u64)]) -> Vec<Option<usize>> {
    let most = events.iter().map(|(number, _)| usize::from(*number) + 1).max().unwrap_or(0);
    let mut places = vec![None; most.saturating_sub(usize::from(FIRST_EVENT))];
    for (number, fingerprint) in events {
        let is_it =
            |entry: &[core::sync::atomic::AtomicU64; 2]| entry[0].load(Ordering::Relaxed) == *fingerprint;
        let at = number.checked_sub(FIRST_EVENT).and_then(|nth| places.get_mut(usize::from(nth)));
        if let Some(place) = at {
            *place = page.events().iter().position(is_it);
        }
    }
    places
}
