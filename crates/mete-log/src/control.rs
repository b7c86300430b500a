//! The control word: everything that a producer needs to know about a log file, in one 64-bit word. So a
//! change takes effect between two rows and never within one (LOG-4, LOG-5).
//!
//! ```text
//!   bit 0–4    log2 of the words of a row
//!   bit 5      enabled
//!   bit 6      frozen
//!   bit 7      plain: enabled, not frozen, not adding, and stamped by the hardware clock or not at all
//!   bit 8–11   entries: event, domain, correspondent, counter
//!   bit 12–14  time stamp source, 0 for none
//!   bit 15     add: each row carries the sum so far
//!   bit 16–39  the file's first word in the data, in words of 64 bits
//!   bit 40–63  the number of words of the file, minus one
//! ```
//!
//! The order is the one that x86 decodes fastest. The low byte serves as a shift count as it is. Each flag is
//! tested in one of the two low bytes, and the common case by a sign. The uppermost field needs no mask.

use crate::layout::Shape;

/// The entries that a row holds, of the five in thesis §3.4. The fifth, the time stamp, is chosen by
/// [`Stamp`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entries(u8);

impl Entries {
    /// No entry: rows are empty and only the index counts.
    pub const NONE: Entries = Entries(0);
    /// The characteristic that the row is about.
    pub const EVENT: Entries = Entries(1);
    /// The accounting domain that is charged ("current", the resource principal).
    pub const DOMAIN: Entries = Entries(2);
    /// The domain at the other end of a shared resource.
    pub const CORRESPONDENT: Entries = Entries(4);
    /// The alteration: 1 on an access, the delta on an exit, the present value on an asynchronous event.
    pub const COUNTER: Entries = Entries(8);
    /// All four.
    pub const ALL: Entries = Entries(15);

    /// The union of both sets.
    pub const fn and(self, other: Entries) -> Entries {
        Entries(self.0 | other.0)
    }

    /// Whether every entry of `other` is in the set.
    pub const fn has(self, other: Entries) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set as four bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set from its four bits. Other bits are dropped.
    pub const fn from_bits(bits: u8) -> Entries {
        Entries(bits & 15)
    }
}

/// The source of a row's time stamp (thesis §4.3.3; the run-queue clock: design decision D4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Stamp {
    /// The row has no time stamp.
    #[default]
    None = 0,
    /// The finest clock of the component. In user space it is the time-stamp counter, in raw ticks; in the
    /// kernel it is the monotonic clock, in nanoseconds.
    Hardware = 1,
    /// The periodic tick: coarse and cheap. Nanoseconds in user space, jiffies in the kernel.
    Tick = 2,
    /// A counter of the area, incremented at each reading: it orders rows without telling the time.
    Virtual = 3,
    /// The run-queue clock, in nanoseconds. Only the kernel has it; it is exact at a context switch.
    RunQueue = 4,
}

impl Stamp {
    /// The source from its three bits. An undefined value reads as [`Stamp::None`].
    pub const fn from_bits(bits: u8) -> Stamp {
        match bits & 7 {
            1 => Stamp::Hardware,
            2 => Stamp::Tick,
            3 => Stamp::Virtual,
            4 => Stamp::RunQueue,
            _ => Stamp::None,
        }
    }
}

/// A log file's control word.
///
/// Any 64-bit pattern is a control word: the accessors mask its fields, so a producer that follows a garbled
/// word stays inside its area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control(u64);

/// Bits 0–4: log2 of the words of a row.
const ROW_BITS: u64 = 31;
/// Bit 5: enabled.
pub const ENABLED_BIT: u64 = 1 << 5;
/// Bit 6: frozen.
pub const FROZEN_BIT: u64 = 1 << 6;
/// Bit 7: the handlers' common case. It follows from the other flags.
pub const PLAIN_BIT: u64 = 1 << 7;
/// Bits 8–11: the entries.
const ENTRIES_SHIFT: u32 = 8;
/// Bits 8–10: the entries that share the row's first word.
pub const WHO_BITS: u64 = 7 << ENTRIES_SHIFT;
/// Bit 11: the counter.
pub const COUNTER_BIT: u64 = 8 << ENTRIES_SHIFT;
/// Bits 12–14: the time stamp's source.
pub const STAMP_SHIFT: u32 = 12;
/// See [`STAMP_SHIFT`].
pub const STAMP_BITS: u64 = 7 << STAMP_SHIFT;
/// The bit in which [`Stamp::Hardware`] and [`Stamp::None`] differ.
pub const HARDWARE_BIT: u64 = (Stamp::Hardware as u64) << STAMP_SHIFT;
/// Bit 15: add.
pub const ADD_BIT: u64 = 1 << 15;
/// Bits 16–39: the file's first word.
pub const FIRST_SHIFT: u32 = 16;
const FIRST_BITS: u64 = (1 << 24) - 1;
/// Bits 40–63: the file's last word, counted from its first.
pub const LAST_SHIFT: u32 = 40;
/// Files begin on a cache line.
pub const OFFSET_UNIT: u64 = 64;

impl Control {
    /// The control word of the null file: not enabled.
    pub const OFF: Control = Control(0);

    /// An enabled file of `1 << rows_log2` rows that begins `offset` bytes into the data. `offset` is rounded
    /// down to a multiple of 64, and `rows_log2` is taken modulo 32. A file without entries takes no room, so
    /// neither matters for it.
    pub const fn new(entries: Entries, stamp: Stamp, add: bool, rows_log2: u8, offset: u32) -> Control {
        let flags = (entries.0 as u64) << ENTRIES_SHIFT | (stamp as u64) << STAMP_SHIFT | ENABLED_BIT;
        let flags = if add { flags | ADD_BIT } else { flags };
        let words = Control(flags).entry_words();
        if words == 0 {
            return Control(flags).with_plain();
        }
        // Entries of one, two and three words make rows of 1, 2 and 4 words, whose logarithm is one less.
        let row = words as u64 - 1;
        let first = (offset as u64 / OFFSET_UNIT * (OFFSET_UNIT / 8)) & FIRST_BITS;
        let last = (1 << row << (rows_log2 & 31)) - 1;
        Control(flags | row | first << FIRST_SHIFT | last << LAST_SHIFT).with_plain()
    }

    /// The same word, with the plain bit that follows from the other flags.
    const fn with_plain(self) -> Control {
        // Of the stamps only the hardware clock and none are plain, and they differ in `HARDWARE_BIT` alone.
        let unusual = FROZEN_BIT | ADD_BIT | (STAMP_BITS & !HARDWARE_BIT);
        let is_plain = self.0 & (ENABLED_BIT | unusual) == ENABLED_BIT;
        Control(if is_plain { self.0 | PLAIN_BIT } else { self.0 & !PLAIN_BIT })
    }

    /// The word as it is in memory.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The control word from any word of memory.
    pub const fn from_bits(bits: u64) -> Control {
        Control(bits)
    }

    /// Whether rows are written at all.
    pub const fn is_enabled(self) -> bool {
        self.0 & ENABLED_BIT != 0
    }

    /// Whether rows are refused and counted for now.
    pub const fn is_frozen(self) -> bool {
        self.0 & FROZEN_BIT != 0
    }

    /// The same file, frozen or thawed.
    pub const fn with_frozen(self, frozen: bool) -> Control {
        Control(if frozen { self.0 | FROZEN_BIT } else { self.0 & !FROZEN_BIT }).with_plain()
    }

    /// The entries other than the time stamp.
    pub const fn entries(self) -> Entries {
        Entries::from_bits((self.0 >> ENTRIES_SHIFT) as u8)
    }

    /// The time stamp's source.
    pub const fn stamp(self) -> Stamp {
        Stamp::from_bits((self.0 >> STAMP_SHIFT) as u8)
    }

    /// Whether each row carries the sum of the counters so far (the papers' `counter_add`).
    pub const fn is_adding(self) -> bool {
        self.0 & ADD_BIT != 0
    }

    /// The number of rows; 1 if a garbled word describes a row that is larger than its file.
    pub const fn rows(self) -> u64 {
        let rows = ((self.0 >> LAST_SHIFT) + 1) >> (self.0 & ROW_BITS);
        if rows == 0 { 1 } else { rows }
    }

    /// The number of 64-bit words that the entries take, without padding: 0 to 3.
    pub const fn entry_words(self) -> u32 {
        (self.0 & WHO_BITS != 0) as u32
            + (self.0 & COUNTER_BIT != 0) as u32
            + (self.0 & STAMP_BITS != 0) as u32
    }

    /// Bytes from one row to the next: 8, 16 or 32. If the word is garbled, it can be any power of two.
    pub const fn row_bytes(self) -> u64 {
        // At most 8 << 31: the masked shift never loses the bit.
        8u64.wrapping_shl((self.0 & ROW_BITS) as u32)
    }

    /// Bytes of all rows together.
    #[inline(always)]
    pub const fn ring_bytes(self) -> u64 {
        ((self.0 >> LAST_SHIFT) + 1) * 8
    }

    /// The offset in bytes at which the file begins in the data.
    #[inline(always)]
    pub const fn offset(self) -> u64 {
        (self.0 >> FIRST_SHIFT & FIRST_BITS) * 8
    }

    /// Whether this describes rows of the right size in a file that lies inside an area's data. A word that a
    /// plan has made for this shape does; a garbled one does not.
    pub const fn lies_inside(self, shape: Shape) -> bool {
        // No sum overflows: the offset is below 2^27 bytes, and the ring has at most 2^27.
        let row = self.entry_words().saturating_sub(1) as u64;
        self.0 & ROW_BITS == row
            && self.ring_bytes().is_power_of_two()
            && self.ring_bytes() >= self.row_bytes()
            && self.offset() + self.ring_bytes() <= shape.data_bytes() as u64
    }

    /// The offset in bytes of row number `index` in the data, before it is masked to the data's size.
    #[inline(always)]
    pub const fn place(self, index: u64) -> u64 {
        // The shift drops high bits of the index, but none of those that the mask keeps.
        self.offset() + ((index << (self.0 & ROW_BITS)) & (self.0 >> LAST_SHIFT)) * 8
    }
}
