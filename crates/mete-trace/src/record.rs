//! One record: a header of 16 bytes, then the event's fields (KLogger §4.1).
//!
//! ```text
//!   0   u16  event
//!   2   u16  bytes of the whole record, a multiple of 8
//!   4   u32  serial number, its low 32 bits
//!   8   u64  time stamp: raw ticks of the trace's clock
//!   16       fields, as the event's layout says
//! ```
//!
//! All little endian. Each processor numbers the events that occur on it, also those that found no room in
//! the buffer: a gap in the serial numbers is a loss, and its length is the size of the loss (§4.3, KLOG-6).

use mete_log::Ticks;

/// Bytes of a record's header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of the largest record.
pub const MAX_BYTES: usize = 4096;
/// Where the time stamp stands.
pub const STAMP_OFFSET: usize = 8;

/// Fills the end of a buffer into which a record did not fit. It is only in buffers and never in a file. It
/// has no serial number and may be as short as one word.
pub const PADDING: u16 = 0xffff;
/// A flush begins. The events up to [`DUMP_FINISH`] may be caused by the recorder itself (§5.2).
pub const DUMP_BEGIN: u16 = 0xfffe;
/// The flush is over.
pub const DUMP_FINISH: u16 = 0xfffd;
/// From here on an event is recorded again: see [`switch`](crate::switch).
pub const SWITCHED_ON: u16 = 0xfffc;
/// From here on an event is not recorded.
pub const SWITCHED_OFF: u16 = 0xfffb;
/// The kernel left out programs: see [`missed`](crate::missed).
pub const MISSED_RUNS: u16 = 0xfffa;
/// The first of the reserved event numbers; a schema's events lie below it.
pub const FIRST_RESERVED: u16 = 0xfff0;

/// A record's first word: the header without the time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which event.
    pub event: u16,
    /// Bytes of the whole record.
    pub bytes: u16,
    /// The low half of the serial number.
    pub serial: u32,
}

impl Head {
    /// From the word as it stands in memory.
    #[inline(always)]
    pub const fn from_word(word: u64) -> Head {
        Head { event: word as u16, bytes: (word >> 16) as u16, serial: (word >> 32) as u32 }
    }

    /// The word as it stands in memory. It is never zero, because no record has zero bytes. Zero stands in a
    /// place that is not written.
    #[inline(always)]
    pub const fn to_word(self) -> u64 {
        self.event as u64 | (self.bytes as u64) << 16 | (self.serial as u64) << 32
    }

    /// Whether this can be the head of a record.
    #[inline(always)]
    pub const fn is_sound(self) -> bool {
        self.event != PADDING && is_sound_size(self.bytes as usize)
    }
}

/// Whether a record may have this size.
#[inline(always)]
pub const fn is_sound_size(bytes: usize) -> bool {
    bytes >= HEADER_BYTES && bytes <= MAX_BYTES && bytes.is_multiple_of(8)
}

/// The whole serial number whose low half is `low`: the first one from `expected` on.
#[inline(always)]
pub const fn unfold(expected: u64, low: u32) -> u64 {
    expected.wrapping_add(low.wrapping_sub(expected as u32) as u64)
}

/// One record of a trace, borrowed from the block in which it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The processor on which it was recorded.
    pub processor: u32,
    /// The number of its file. That is the processor's number, except for programs' own events beside the
    /// kernel's.
    pub file: u32,
    /// Its number among the events of that file.
    pub serial: u64,
    /// Which event.
    pub event: u16,
    /// What the trace's clock showed.
    pub time: Ticks,
    /// The whole record, its header included.
    pub bytes: &'a [u8],
}

impl Record<'_> {
    /// Whether the recorder itself wrote it, around a flush.
    pub fn is_dump_mark(&self) -> bool {
        matches!(self.event, DUMP_BEGIN | DUMP_FINISH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_6_serials_unfold_across_the_end_of_their_32_bits() {
        assert_eq!(unfold(0, 7), 7);
        assert_eq!(unfold(0xffff_fffe, 0xffff_ffff), 0xffff_ffff);
        assert_eq!(unfold(0xffff_ffff, 3), 0x1_0000_0003);
        assert_eq!(unfold(0x5_0000_0010, 0x10), 0x5_0000_0010);
    }

    #[test]
    fn klog_6_a_head_is_never_the_word_of_an_unwritten_place() {
        let head = Head { event: 0, bytes: 16, serial: 0 };
        assert_ne!(head.to_word(), 0);
        assert_eq!(Head::from_word(head.to_word()), head);
        assert!(!Head::from_word(0).is_sound());
    }
}
