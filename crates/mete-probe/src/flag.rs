//! An event's flag and its number: their memory ordering, in the smallest form, so that loom can check it (in
//! `mete-log`, `tests/loom.rs`).
//!
//! Where code is not patched, a thread finds the flag set and then reads the number. Patching has every
//! thread pass a serialising instruction, but nothing comes between these two reads. So the flag is set with
//! release, after the number, and a fence comes before the number is read. A thread that finds the flag unset
//! pays for neither.

use crate::sync::{AtomicBool, AtomicU16, Ordering, fence};

/// Switches an event on, whose number is stored, or off.
pub fn set(flag: &AtomicBool, on: bool) {
    flag.store(on, Ordering::Release);
}

/// Whether the event is on.
#[inline(always)]
pub fn is_set(flag: &AtomicBool) -> bool {
    // Relaxed: a thread that sees a change late logs some rows less or more, into memory that stays mapped.
    flag.load(Ordering::Relaxed)
}

/// The number, for a thread that may have found the flag set.
#[inline(always)]
pub fn number(id: &AtomicU16) -> u16 {
    // On x86-64 the fence is no instruction.
    fence(Ordering::Acquire);
    id.load(Ordering::Relaxed)
}
