//! The cyclic buffer's memory ordering, in the smallest form, so that loom can check it.
//!
//! A row's place is its number modulo the number of rows. The writer stores the row, then the
//! index; the reader copies rows, then reads the index again and keeps what cannot have been
//! overwritten meanwhile. Two orderings make that sound:
//!
//! * **A published row is complete.** The index is stored with release, after the row; whoever
//!   acquires the index sees the row.
//! * **A row seen half overwritten is seen to be so.** The writer's release fence stands between
//!   the index of the row before and the first store of this row. A reader that saw any of those
//!   stores, then fences with acquire and reads the index, reads at least that index, and so
//!   knows that the old row's place was being reused. (The same argument as for a sequence lock.)
//!
//! On x86 both fences cost nothing: stores are not reordered with stores, nor loads with loads.

use crate::sync::{AtomicU64, Ordering, fence};

/// Writes row number `index` and commits it. The caller is the only writer of the file.
#[inline(always)]
pub fn publish<'a>(register: &AtomicU64, index: u64, row: impl Iterator<Item = (&'a AtomicU64, u64)>) {
    // Orders the commit of the row before this one ahead of this row's stores; see above.
    fence(Ordering::Release);
    for (place, word) in row {
        place.store(word, Ordering::Relaxed);
    }
    // Commits: the row's stores come before it.
    register.store(index.wrapping_add(1), Ordering::Release);
}

/// The number of rows ever written; what was written before it is visible.
#[inline(always)]
pub fn written(register: &AtomicU64) -> u64 {
    register.load(Ordering::Acquire)
}

/// The number of rows ever written, read after all loads that came before.
#[inline(always)]
pub fn written_by_now(register: &AtomicU64) -> u64 {
    fence(Ordering::Acquire);
    register.load(Ordering::Relaxed)
}

/// The first row that is intact when `written` rows have been written to a file of `rows` rows.
///
/// The writer may be at row `written` already, which lies where row `written - rows` lay, so one
/// row less than the file holds can be read.
#[inline(always)]
pub const fn first_intact(written: u64, rows: u64) -> u64 {
    written.saturating_sub(rows - 1)
}
