//! One processor's recording buffer, seen by both sides.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::layout::{self, HEADER_BYTES};
use crate::protocol::{self, Reserve};

/// A view of one buffer. Every word in it may be changed by others at any time.
///
/// Invariant: `data` has `2^n` bytes, 16 <= n <= 30; both slices are of one area.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'a> {
    header: &'a [AtomicU64],
    data: &'a [AtomicU64],
}

impl<'a> Buffer<'a> {
    /// The buffer in the words of an area; `None` if they are not as many as some size needs.
    /// The size is taken from their number and never from the memory.
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
        self.word(layout::MAGIC_OFFSET).store(layout::MAGIC, Ordering::Release);
    }

    /// Whether somebody has made a buffer of this memory.
    pub fn is_initialised(&self) -> bool {
        self.word(layout::MAGIC_OFFSET).load(Ordering::Acquire) == layout::MAGIC
    }

    /// Begins again with an empty buffer and this serial number. Nobody must use the buffer meanwhile; what its memory
    /// holds is what a [`Consumer`](crate::Consumer) left, or is not read.
    pub fn restart(&self, serial: u64) {
        self.released_word().store(0, Ordering::Relaxed);
        self.reserve_word().store(serial << 32, Ordering::Release);
    }

    /// Changes the low-water mark: producers call for a flush when less than `percent` is free.
    pub fn set_low_water(&self, percent: u8) {
        let free = u64::from(self.capacity()) * u64::from(percent.min(100)) / 100;
        self.word(layout::MARK_OFFSET).store(u64::from(self.capacity()) - free, Ordering::Relaxed);
    }

    /// Bytes in use at which a flush is due.
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

    /// Bytes that are reserved and not yet released, as the words in memory say.
    pub fn used(&self) -> u32 {
        let released = self.released_word().load(Ordering::Relaxed);
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

    /// The words from a byte offset to the end of the data; the offset is masked here.
    #[inline(always)]
    pub(crate) fn data_from(&self, offset: u32) -> &'a [AtomicU64] {
        &self.data[(offset as usize / 8) & (self.data.len() - 1)..]
    }

    /// What the flush thread sleeps on.
    pub(crate) fn calls(&self) -> &'a AtomicU32 {
        let word = self.word(layout::CALLS_OFFSET);
        // SAFETY: a 64-bit atomic is large enough and aligned for a 32-bit one, lives as long, and
        // this word is reached nowhere else.
        unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) }
    }

    #[inline(always)]
    fn word(&self, offset: usize) -> &'a AtomicU64 {
        &self.header[offset / 8]
    }
}
