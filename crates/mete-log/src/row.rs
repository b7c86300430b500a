//! A row: the five selectable entries, packed into at most three 64-bit words.
//!
//! ```text
//!   who      bits 0–15 event, 16–31 domain, 32–47 correspondent, 48–63 zero
//!   counter  64 bits
//!   stamp    64 bits
//! ```
//!
//! A word is present if an entry in it is selected. The three entries of `who` always come together; a reader
//! shows those that the file was configured for. One word makes a row of 8 bytes, two of 16, three of 32: a
//! power of two, as the paper's padding asks for (thesis §4.3.3).

use crate::control::{Control, Entries, Stamp};
use crate::{DomainId, EventId};

/// One row as a reader sees it. An entry that the file does not hold is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The characteristic.
    pub event: Option<EventId>,
    /// The domain that is charged.
    pub domain: Option<DomainId>,
    /// The domain at the other end; [`NO_DOMAIN`](crate::NO_DOMAIN) where the event has none.
    pub correspondent: Option<DomainId>,
    /// The alteration, delta or value.
    pub counter: Option<u64>,
    /// The time stamp, in the unit of the file's [`Stamp`].
    pub stamp: Option<u64>,
}

/// The first word of a row: which domain did what to which other domain.
#[inline(always)]
pub const fn who(event: EventId, domain: DomainId, correspondent: DomainId) -> u64 {
    event.get() as u64 | (domain.get() as u64) << 16 | (correspondent.get() as u64) << 32
}

/// The event, the domain and the correspondent from a row's first word. Any word has three.
#[inline(always)]
pub const fn who_parts(who: u64) -> (EventId, DomainId, DomainId) {
    (EventId::new(who as u16), DomainId::new((who >> 16) as u16), DomainId::new((who >> 32) as u16))
}

impl Row {
    /// Decodes the words of one row of a file with this control word. Missing words read as zero.
    pub fn decode(control: Control, words: &[u64]) -> Row {
        let mut words = words.iter().copied();
        let entries = control.entries();
        let mut row = Row::default();
        if control.to_bits() & crate::control::WHO_BITS != 0 {
            let (event, domain, correspondent) = who_parts(words.next().unwrap_or(0));
            row.event = entries.has(Entries::EVENT).then_some(event);
            row.domain = entries.has(Entries::DOMAIN).then_some(domain);
            row.correspondent = entries.has(Entries::CORRESPONDENT).then_some(correspondent);
        }
        if entries.has(Entries::COUNTER) {
            row.counter = Some(words.next().unwrap_or(0));
        }
        if control.stamp() != Stamp::None {
            row.stamp = Some(words.next().unwrap_or(0));
        }
        row
    }
}
