//! The control word: everything a producer needs to know about a log file, in one 64-bit word, so
//! that a change takes effect between two rows and never within one (LOG-4, LOG-5).
//!
//! ```text
//!   bit 0–4    log2 of the words of a row
//!   bit 5      enabled
//!   bit 6      frozen
//!   bit 7      plain: enabled, not frozen, not adding, and stamped by the hardware clock or not
//!   bit 8–11   entries: event, domain, correspondent, counter
//!   bit 12–14  time stamp source, 0 for none
//!   bit 15     add: each row carries the sum so far
//!   bit 16–39  where the file begins in the data, in words of 64 bits
//!   bit 40–63  words of the file, less one
//! ```
//!
//! The order is what x86 decodes fastest: the low byte as it stands is a count for a shift, flags
//! are tested in one of the two low bytes, the common case by a sign, and the uppermost field needs
//! no mask.

use crate::layout::Shape;

/// Which of the five entries (thesis §3.4) a row holds; the time stamp is chosen by [`Stamp`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entries(u8);

impl Entries {
    /// No entry: rows are empty and only the index counts.
    pub const NONE: Entries = Entries(0);
    /// Which characteristic the row is about.
    pub const EVENT: Entries = Entries(1);
    /// The accounting domain that is charged ("current", the resource principal).
    pub const DOMAIN: Entries = Entries(2);
    /// The domain at the other end of a shared resource.
    pub const CORRESPONDENT: Entries = Entries(4);
    /// The alteration: 1 on access, the delta on exit, the present value on an asynchronous event.
    pub const COUNTER: Entries = Entries(8);
    /// All four.
    pub const ALL: Entries = Entries(15);

    /// Both sets together.
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

    /// The set from its four bits; other bits are dropped.
    pub const fn from_bits(bits: u8) -> Entries {
        Entries(bits & 15)
    }
}

/// Where the time stamp of a row comes from (thesis §4.3.3; run-queue clock: design decision D4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Stamp {
    /// The row has no time stamp.
    #[default]
    None = 0,
    /// The finest clock of the component: the time-stamp counter in user space, in raw ticks; the
    /// monotonic clock in the kernel, in nanoseconds.
    Hardware = 1,
    /// The periodic tick: coarse and cheap. Nanoseconds in user space, jiffies in the kernel.
    Tick = 2,
    /// A counter of the area, incremented at each reading: an order without a time.
    Virtual = 3,
    /// The run-queue clock, nanoseconds; the kernel only, exact at a context switch.
    RunQueue = 4,
}

impl Stamp {
    /// The source from its three bits; what is not defined reads as [`Stamp::None`].
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
/// Any 64-bit pattern is a control word: the accessors mask, and a producer that follows a
/// garbled one stays inside its area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control(u64);

/// Bits 0–4: log2 of the words of a row.
const ROW_BITS: u64 = 31;
/// Bit 5: enabled.
pub const ENABLED_BIT: u64 = 1 << 5;
/// Bit 6: frozen.
pub const FROZEN_BIT: u64 = 1 << 6;
/// Bit 7: the handlers' common case; follows from the other flags.
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
    /// The null file's word: not enabled.
    pub const OFF: Control = Control(0);

    /// An enabled file of `1 << rows_log2` rows that begins `offset` bytes into the data.
    /// `offset` is rounded down to a multiple of 64, `rows_log2` taken modulo 32. A file without
    /// entries takes no room, so the two do not matter for it.
    pub const fn new(entries: Entries, stamp: Stamp, add: bool, rows_log2: u8, offset: u32) -> Control {
        let flags = (entries.0 as u64) << ENTRIES_SHIFT | (stamp as u64) << STAMP_SHIFT | ENABLED_BIT;
        let flags = if add { flags | ADD_BIT } else { flags };
        let words = Control(flags).entry_words();
        if words == 0 {
            return Control(flags).with_plain();
        }
        let row = words as u64 - 1;
        let first = (offset as u64 / OFFSET_UNIT * (OFFSET_UNIT / 8)) & FIRST_BITS;
        let last = (1 << row << (rows_log2 & 31)) - 1;
        Control(flags | row | first << FIRST_SHIFT | last << LAST_SHIFT).with_plain()
    }

    /// The same with the plain bit as the other flags have it.
    const fn with_plain(self) -> Control {
        let unusual = FROZEN_BIT | ADD_BIT | (STAMP_BITS & !HARDWARE_BIT);
        let is_plain = self.0 & (ENABLED_BIT | unusual) == ENABLED_BIT;
        Control(if is_plain { self.0 | PLAIN_BIT } else { self.0 & !PLAIN_BIT })
    }

    /// The word as it stands in memory.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Any word from memory.
    pub const fn from_bits(bits: u64) -> Control {
        Control(bits)
    }

    /// Whether rows are written at all.
    pub const fn is_enabled(self) -> bool {
        self.0 & ENABLED_BIT != 0
    }

    /// Whether rows are refused and counted for the moment.
    pub const fn is_frozen(self) -> bool {
        self.0 & FROZEN_BIT != 0
    }

    /// The same file, frozen or thawed.
    pub const fn with_frozen(self, frozen: bool) -> Control {
        Control(if frozen { self.0 | FROZEN_BIT } else { self.0 & !FROZEN_BIT }).with_plain()
    }

    /// The entries beside the time stamp.
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

    /// Number of rows; 1 if a garbled word says that a row is larger than its file.
    pub const fn rows(self) -> u64 {
        let rows = ((self.0 >> LAST_SHIFT) + 1) >> (self.0 & ROW_BITS);
        if rows == 0 { 1 } else { rows }
    }

    /// Words of 64 bits that the entries take, without padding: 0 to 3.
    pub const fn entry_words(self) -> u32 {
        (self.0 & WHO_BITS != 0) as u32
            + (self.0 & COUNTER_BIT != 0) as u32
            + (self.0 & STAMP_BITS != 0) as u32
    }

    /// Bytes from one row to the next: 8, 16 or 32; any power of two if the word is garbled.
    pub const fn row_bytes(self) -> u64 {
        8u64.wrapping_shl((self.0 & ROW_BITS) as u32)
    }

    /// Bytes of all rows together.
    #[inline(always)]
    pub const fn ring_bytes(self) -> u64 {
        ((self.0 >> LAST_SHIFT) + 1) * 8
    }

    /// Bytes into the data at which the file begins.
    #[inline(always)]
    pub const fn offset(self) -> u64 {
        (self.0 >> FIRST_SHIFT & FIRST_BITS) * 8
    }

    /// Whether this describes rows of the right size in a file that lies inside an area's data, as
    /// [`Control::new`] makes it and a garbled word does not.
    pub const fn lies_inside(self, shape: Shape) -> bool {
        let row = self.entry_words().saturating_sub(1) as u64;
        self.0 & ROW_BITS == row
            && self.ring_bytes().is_power_of_two()
            && self.ring_bytes() >= self.row_bytes()
            && self.offset() + self.ring_bytes() <= shape.data_bytes() as u64
    }

    /// Bytes into the data of row number `index`, before masking to the data's size.
    #[inline(always)]
    pub const fn place(self, index: u64) -> u64 {
        self.offset() + ((index << (self.0 & ROW_BITS)) & (self.0 >> LAST_SHIFT)) * 8
    }
}
