//! The cyclic buffer's memory ordering, in the smallest form, so that loom can check it.
//!
//! A row's place is its number modulo the number of rows. The writer stores the row, then the index. The
//! reader copies rows, then reads the index again, and keeps the rows that cannot have been overwritten
//! meanwhile. Two orderings make that sound:
//!
//! * **A published row is complete.** The index is stored with release, after the row. A reader that acquires
//!   the index sees the row.
//! * **A reader notices a row that is half overwritten.** The writer's release fence is between storing the
//!   index for the row before and the first store of this row. Assume that a reader sees any of this row's
//!   stores, then fences with acquire and reads the index. It reads at least the index of the row before, and
//!   so knows that the old row's place was in use again. (A sequence lock rests on the same argument.)
//!
//! On x86 both fences cost nothing: stores are not reordered with stores, nor loads with loads.

use crate::sync::{AtomicU64, Ordering, fence};

/// Writes row number `index` and commits it. The caller is the only writer of the file.
#[inline(always)]
pub fn publish<'a>(register: &AtomicU64, index: u64, row: impl Iterator<Item = (&'a AtomicU64, u64)>) {
    // Orders the commit of the row before this one ahead of this row's stores; see the module.
    fence(Ordering::Release);
    for (place, word) in row {
        // Relaxed: the fence above and the release below order it.
        place.store(word, Ordering::Relaxed);
    }
    // Commits the row. Release: the row's stores come before it.
    register.store(index.wrapping_add(1), Ordering::Release);
}

/// The number of rows ever written. These rows are visible to the caller.
#[inline(always)]
pub fn written(register: &AtomicU64) -> u64 {
    // Acquire: pairs with the commit in `publish`.
    register.load(Ordering::Acquire)
}

/// The number of rows ever written, read after all earlier loads of the caller.
#[inline(always)]
pub fn written_by_now(register: &AtomicU64) -> u64 {
    // The copied words are loaded before the fence, the index after it; see the module.
    fence(Ordering::Acquire);
    register.load(Ordering::Relaxed)
}

/// The first row that is intact when `written` rows have been written to a file of `rows` rows.
///
/// The writer can already be at row `written`, whose place is that of row `written - rows`. So one row less
/// than the file holds can be read.
#[inline(always)]
pub const fn first_intact(written: u64, rows: u64) -> u64 {
    written.saturating_sub(rows - 1)
}
