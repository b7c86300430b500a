//! One processor's recording buffer, as producers and the flush thread see it.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::layout::{self, HEADER_BYTES};
use crate::protocol::{self, Reserve};

/// A view of one buffer. Producers in this and other processes may change every word in it at any time.
///
/// Invariant: `data` has `2^n` bytes, 16 <= n <= 30; both slices are of one area.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'a> {
    header: &'a [AtomicU64],
    data: &'a [AtomicU64],
}

impl<'a> Buffer<'a> {
    /// The buffer in the words of an area; `None` if the number of words fits no size of buffer. The size is
    /// derived from that number and never read from the memory.
    pub fn new(area: &'a [AtomicU64]) -> Option<Buffer<'a>> {
        let data_bytes = (area.len() * 8).checked_sub(HEADER_BYTES + layout::SLACK_BYTES)?;
        let sizes = 1 << layout::MIN_SIZE_LOG2..=1 << layout::MAX_SIZE_LOG2;
        if !data_bytes.is_power_of_two() || !sizes.contains(&data_bytes) {
            return None;
        }
        let (header, rest) = area.split_at(HEADER_BYTES / 8);
        Some(Buffer { header, data: &rest[..data_bytes / 8] })
    }

    /// Writes the header of an area whose memory is zero, and the low-water mark.
    pub fn initialise(&self, processor: u32, low_water_percent: u8) {
        let size_log2 = u64::from(self.capacity().trailing_zeros());
        self.word(layout::PROCESSOR_OFFSET).store(u64::from(processor) | size_log2 << 32, Ordering::Relaxed);
        self.set_low_water(low_water_percent);
        // Last, with release: a process that sees the magic word sees the rest of the header.
        self.word(layout::MAGIC_OFFSET).store(layout::MAGIC, Ordering::Release);
    }

    /// Whether this memory has been made into a buffer.
    pub fn is_initialised(&self) -> bool {
        self.word(layout::MAGIC_OFFSET).load(Ordering::Acquire) == layout::MAGIC
    }

    /// Begins again with an empty buffer and this serial number. No other thread may use the buffer during
    /// the call. The memory holds what a [`Consumer`](crate::Consumer) has left, which is zero, or what will
    /// not be read.
    pub fn restart(&self, serial: u64) {
        self.released_word().store(0, Ordering::Relaxed);
        self.reserve_word().store(serial << 32, Ordering::Release);
    }

    /// Changes the low-water mark: producers call for a flush when less than `percent` is free.
    pub fn set_low_water(&self, percent: u8) {
        // In 64 bits: the product of a gigabyte and a percentage has more than 32.
        let free = u64::from(self.capacity()) * u64::from(percent.min(100)) / 100;
        self.word(layout::MARK_OFFSET).store(u64::from(self.capacity()) - free, Ordering::Relaxed);
    }

    /// The number of bytes in use at which a flush is due.
    #[inline(always)]
    pub fn mark(&self) -> u32 {
        self.word(layout::MARK_OFFSET).load(Ordering::Relaxed) as u32
    }

    /// Whether both are views of the same memory.
    pub fn is_same(&self, other: &Buffer<'_>) -> bool {
        std::ptr::eq(self.header.as_ptr(), other.header.as_ptr())
    }

    /// Bytes of data.
    #[inline(always)]
    pub fn capacity(&self) -> u32 {
        (self.data.len() * 8) as u32
    }

    /// What producers have taken so far.
    pub fn reserved(&self) -> Reserve {
        protocol::reserved(self.reserve_word())
    }

    /// Bytes that are reserved and not yet released, as far as the words in memory can be trusted.
    pub fn used(&self) -> u32 {
        let released = self.released_word().load(Ordering::Relaxed);
        // Saturates where a garbled word claims more than any buffer has.
        self.reserved().words.wrapping_sub((released >> 3) as u32).saturating_mul(8)
    }

    #[inline(always)]
    pub(crate) fn reserve_word(&self) -> &'a AtomicU64 {
        self.word(layout::RESERVE_OFFSET)
    }

    #[inline(always)]
    pub(crate) fn released_word(&self) -> &'a AtomicU64 {
        self.word(layout::RELEASED_OFFSET)
    }

    /// The words from a byte offset to the end of the data. The offset is masked here, so that it is always
    /// inside.
    #[inline(always)]
    pub(crate) fn data_from(&self, offset: u32) -> &'a [AtomicU64] {
        &self.data[(offset as usize / 8) & (self.data.len() - 1)..]
    }

    /// The word that the flush thread sleeps on.
    pub(crate) fn calls(&self) -> &'a AtomicU32 {
        let word = self.word(layout::CALLS_OFFSET);
        // SAFETY: a 64-bit atomic is large enough and aligned for a 32-bit one, and lives as long. No other
        // code accesses this word.
        unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) }
    }

    #[inline(always)]
    fn word(&self, offset: usize) -> &'a AtomicU64 {
        &self.header[offset / 8]
    }
}
