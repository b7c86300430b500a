//! The layout of a recording buffer: one area for each processor. This file is the one definition;
//! `include/mete_trace.h` says the same in C, and a test compares the two.
//!
//! ```text
//!   0        header    one page
//!   4096     data      a power of two of bytes: the ring
//!            slack     one page into which a producer with a garbled position may write
//! ```
//!
//! The size of an area is a multiple of the page size, so that in an eBPF array of areas each area begins on
//! a page. Records are at most a page long. They begin inside the data, because positions are masked. So a
//! producer with a garbled position ends in the slack.

/// First word of every buffer: "METEBUF" and the layout's version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"METEBUF\x01");
/// Bytes of the header.
pub const HEADER_BYTES: usize = 4096;
/// Bytes after the data.
pub const SLACK_BYTES: usize = crate::record::MAX_BYTES;

/// Header: [`MAGIC`].
pub const MAGIC_OFFSET: usize = 0;
/// Header: the processor that the buffer belongs to, 32 bits, and the binary logarithm of the bytes of data,
/// 32 bits.
pub const PROCESSOR_OFFSET: usize = 8;
/// Header: the [`Reserve`](crate::protocol::Reserve) word, on a cache line that only producers write.
pub const RESERVE_OFFSET: usize = 64;
/// Header: bytes ever released, 64 bits, on a cache line that only the flush thread writes.
pub const RELEASED_OFFSET: usize = 128;
/// Header: the number of bytes in use from which on the flush thread is woken, 32 bits.
pub const MARK_OFFSET: usize = 136;
/// Header: the counter of calls for the flush thread, 32 bits. The flush thread sleeps on it (a futex).
pub const CALLS_OFFSET: usize = 192;

/// The smallest data: 64 KiB.
pub const MIN_SIZE_LOG2: u32 = 16;
/// The largest data: 1 GiB.
pub const MAX_SIZE_LOG2: u32 = 30;
/// KLogger's default for each processor (§4.3): 4 MiB.
pub const DEFAULT_SIZE_LOG2: u32 = 22;
/// The same in bytes.
pub const DEFAULT_BYTES: u64 = 1 << DEFAULT_SIZE_LOG2;
/// KLogger's default low-water mark (§4.3): the buffer is flushed when less than this is free.
pub const DEFAULT_LOW_WATER_PERCENT: u8 = 10;

/// Bytes of the area of one processor.
pub const fn area_bytes(size_log2: u32) -> usize {
    HEADER_BYTES + (1 << size_log2) + SLACK_BYTES
}
