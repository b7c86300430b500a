//! The atomics of the ring: the machine's, or loom's when loom checks the memory ordering (under
//! `RUSTFLAGS="--cfg loom"`).

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
