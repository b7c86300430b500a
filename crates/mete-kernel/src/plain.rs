//! Keys and values of maps as bytes, which is how the loader library takes them.

/// A type that is its bytes, and nothing else.
///
/// # Safety
///
/// The type has no padding, no pointer and no reference, and every pattern of bits is a value of it.
pub(crate) unsafe trait Plain: Copy {}

/// The bytes of a value.
pub(crate) fn bytes<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: `Plain` has no padding, so all `size_of::<T>()` bytes behind the reference are initialised;
    // they live as long as it, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The value that has these bytes; `None` if their number is another one.
pub(crate) fn value<T: Plain>(bytes: &[u8]) -> Option<T> {
    // SAFETY: the number of bytes is that of the value, and every pattern of bits is one; the read needs no
    // alignment.
    (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

// SAFETY: every pattern of bits is a number.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: an array has no padding between elements, and is plain if they are.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
