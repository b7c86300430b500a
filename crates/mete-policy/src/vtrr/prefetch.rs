//! Asks memory for what will be read soon.

/// Brings a value's cache line near, without waiting for it. Does nothing on machines where it cannot.
#[inline]
pub(super) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction (SSE, which every x86-64 processor has) is a hint. It reads nothing that the
    // program sees and cannot fault. In addition, the address is that of a live value.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
