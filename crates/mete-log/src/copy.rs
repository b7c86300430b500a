//! Copying words out of shared memory while somebody may be writing them.
//!
//! A loop of atomic loads moves eight bytes at a time, a small part of what the memory can do. On
//! x86-64 the copy is the processor's own string move instead: to the compiler it is opaque, so it
//! assumes nothing about the words. Words that change meanwhile may come out as a mixture, which
//! the reader finds out by the index and drops.

use core::sync::atomic::AtomicU64;

/// Copies `from` into the front of `to`; what is longer is left alone.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub fn copy_words(from: &[AtomicU64], to: &mut [u64]) {
    let words = from.len().min(to.len());
    // SAFETY: both slices have `words` words; the direction flag is clear by the calling convention.
    unsafe {
        core::arch::asm!(
            "rep movsb",
            // The manuals order a string move's stores loosely and say little of its loads; the
            // index that is read next must not have been read before them.
            "lfence",
            inout("rsi") from.as_ptr() => _,
            inout("rdi") to.as_mut_ptr() => _,
            inout("rcx") words * 8 => _,
            options(nostack, preserves_flags),
        );
    }
}

/// As above, word by word.
#[cfg(any(not(target_arch = "x86_64"), miri))]
#[inline]
pub fn copy_words(from: &[AtomicU64], to: &mut [u64]) {
    for (to, from) in to.iter_mut().zip(from) {
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
