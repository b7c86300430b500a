//! The atomics of the recording buffer: the machine's, or loom's while the memory ordering is model-checked
//! (`RUSTFLAGS="--cfg loom"`).

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};

/// Loads a value that is to be exchanged.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn load_to_exchange(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// The same for loom 0.7, which remembers only the last access to a word. A plain load right before the
/// exchange would hide from loom that another thread's load depends on the exchange, and loom would not try
/// the two in the other order.
#[cfg(loom)]
pub(crate) fn load_to_exchange(word: &AtomicU64) -> u64 {
    word.fetch_add(0, Ordering::Relaxed)
}
