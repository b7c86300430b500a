//! How a program writes into the buffers of the recorder that has started it.
//!
//! ```no_run
//! use std::sync::LazyLock;
//! use mete_trace::Channel;
//!
//! // `mete schema generate rust` writes this for a schema's events: their numbers in that schema, and fingerprints.
//! const EVENTS: [(u16, u64); 1] = [(16, 0x1234)];
//! static CHANNEL: LazyLock<Channel> = LazyLock::new(|| Channel::from_environment(&EVENTS));
//!
//! # let record = [0; 24];
//! CHANNEL.emit(&record);
//! ```

use core::sync::atomic::Ordering;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use crate::description::ClockSource;
use crate::invitation::{InvitationPage, MAGIC, VARIABLE};
use crate::memory::{Buffers, Memory};
use crate::producer::{Outcome, Producer};
use crate::record::HEADER_BYTES;

/// Words of the largest record that a schema can have: 256 bytes, the header included.
const MOST_WORDS: usize = 256 / 8;
/// The number of the first event of a schema.
const FIRST_EVENT: u16 = 16;

/// Where a program's records go. Without a recorder they go nowhere, which costs one branch.
#[derive(Debug)]
pub struct Channel(Option<JoinedRecorder>);

#[derive(Debug)]
struct JoinedRecorder {
    page: InvitationPage,
    buffers: Memory,
    clock: ClockSource,
    /// The position of each of the program's events in the invitation, in the order of the program's own
    /// event numbers.
    places: Vec<Option<usize>>,
}

impl Channel {
    /// Joins the recorder that has started this program, if a recorder has. `events` are the program's
    /// events: their numbers in its records, and their fingerprints.
    ///
    /// An invalid invitation has the same effect as no recorder: the program goes on without recording.
    pub fn from_environment(events: &[(u16, u64)]) -> Channel {
        std::env::var(VARIABLE).map_or(Channel(None), |files| Channel::join(&files, events))
    }

    /// The same, with `files` as the content of the environment variable.
    pub fn join(files: &str, events: &[(u16, u64)]) -> Channel {
        Channel(JoinedRecorder::new(files, events))
    }

    /// Whether there is a recorder.
    pub fn is_joined(&self) -> bool {
        self.0.is_some()
    }

    /// Records what an encoder has written, if the event is on. No lock, and no system call except at the
    /// low-water mark.
    #[inline]
    pub fn emit(&self, record: &[u8]) {
        if let Some(joined) = &self.0
            && let Some(number) = joined.number(record)
        {
            joined.record(number, record);
        }
    }
}

/// A new descriptor for an inherited one.
fn inherited(number: &str) -> Option<OwnedFd> {
    let number: RawFd = number.parse().ok().filter(|number| *number >= 0)?;
    // SAFETY: it is only duplicated, which fails if there is no such descriptor.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_dupfd_cloexec(file, 3).ok()
}

impl JoinedRecorder {
    fn new(files: &str, events: &[(u16, u64)]) -> Option<JoinedRecorder> {
        let (invitation, buffers) = files.split_once(',')?;
        let invitation = inherited(invitation)?;
        let page = InvitationPage::join(&invitation).ok()?;
        // Acquire: a program that sees the magic word sees the other words.
        let word = |nth: usize| page.words()[nth].load(Ordering::Acquire);
        if word(0) != MAGIC {
            return None;
        }
        let (processors, size_log2) = (word(1) as u32, (word(1) >> 32) as u32);
        let clock = if word(2) as u32 == 0 { ClockSource::Counter } else { ClockSource::Monotonic };
        let buffers = Memory::join(inherited(buffers)?, processors as usize, size_log2).ok()?;
        let places = places(&page, events);
        Some(JoinedRecorder { page, buffers, clock, places })
    }

    /// The recorder's number of a record's event, if the event is on.
    #[inline]
    fn number(&self, record: &[u8]) -> Option<u16> {
        let own = u16::from_le_bytes(*record.first_chunk()?);
        let place = *self.places.get(usize::from(own.checked_sub(FIRST_EVENT)?))?;
        let word = self.page.events().get(place?)?[1].load(Ordering::Relaxed);
        (word >> 32 != 0).then_some(word as u16)
    }

    #[inline]
    fn record(&self, number: u16, record: &[u8]) {
        // The thread may move to another processor right after this. That is slower, and nothing worse: any
        // number of producers may share a buffer.
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

/// The position of each event in the invitation. Positions are kept and not the words, because an event may
/// be switched later.
fn places(page: &InvitationPage, events: &[(u16, u64)]) -> Vec<Option<usize>> {
    let most = events.iter().map(|(number, _)| usize::from(*number) + 1).max().unwrap_or(0);
    let mut places = vec![None; most.saturating_sub(usize::from(FIRST_EVENT))];
    for (number, fingerprint) in events {
        let at = number.checked_sub(FIRST_EVENT).and_then(|nth| places.get_mut(usize::from(nth)));
        if let Some(place) = at {
            *place = page.position(*fingerprint);
        }
    }
    places
}
