//! Copying words out of shared memory while a producer can be writing them.
//!
//! A loop of atomic loads moves eight bytes at a time, which is a small part of the memory's speed. On x86-64
//! the copy is the processor's own string move instead. It is opaque to the compiler, which therefore assumes
//! nothing about the words. Words that change meanwhile can come out as a mixture of old and new. The reader
//! finds that out by the index and drops the row.

use core::sync::atomic::AtomicU64;

/// Copies `from` into the front of `to`. Words beyond the shorter of the two are left alone.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub fn copy_words(from: &[AtomicU64], to: &mut [u64]) {
    let words = from.len().min(to.len());
    // SAFETY: both slices have `words` words; the direction flag is clear by the calling convention.
    unsafe {
        core::arch::asm!(
            "rep movsb",
            // The manuals order a string move's stores loosely and say little about its loads. The fence
            // keeps the processor from reading the index, which follows, before these words.
            "lfence",
            inout("rsi") from.as_ptr() => _,
            inout("rdi") to.as_mut_ptr() => _,
            inout("rcx") words * 8 => _,
            options(nostack, preserves_flags),
        );
    }
}

/// The same, word by word.
#[cfg(any(not(target_arch = "x86_64"), miri))]
#[inline]
pub fn copy_words(from: &[AtomicU64], to: &mut [u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        // Relaxed: the fence before the reader's second look at the index orders these loads.
        *to = from.load(core::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_10_copies_of_every_length_are_whole() {
        let from: Vec<_> = (0..70).map(AtomicU64::new).collect();
        for words in 0..70 {
            let mut to = vec![u64::MAX; 70];
            copy_words(&from[..words], &mut to);
            let expected: Vec<_> = (0..70).map(|at| if at < words as u64 { at } else { u64::MAX }).collect();
            assert_eq!(to, expected);
        }
    }
}
