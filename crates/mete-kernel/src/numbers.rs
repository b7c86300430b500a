//! Numbers that a program in the kernel and this process both read and write, in a map that is mapped into
//! this process.

use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use crate::Mapping;

/// What consists of nothing but atomic numbers.
///
/// # Safety
///
/// Every byte of the type belongs to an atomic number, and the type is laid out as C does it.
pub unsafe trait AtomicNumbers: Sync {}

// SAFETY: it is one.
unsafe impl AtomicNumbers for AtomicU8 {}
// SAFETY: it is one.
unsafe impl AtomicNumbers for AtomicU16 {}
// SAFETY: it is one.
unsafe impl AtomicNumbers for AtomicI32 {}
// SAFETY: it is one.
unsafe impl AtomicNumbers for AtomicU32 {}
// SAFETY: it is one.
unsafe impl AtomicNumbers for AtomicU64 {}
// SAFETY: it consists of them.
unsafe impl<T: AtomicNumbers, const N: usize> AtomicNumbers for [T; N] {}

/// Defines a structure that a program writes as atomic numbers, and checks that each lies where it lies in
/// the skeleton's type. `as unused` marks bytes between two numbers.
///
/// ```ignore
/// mirror!(SharedRow of types::row {
///     time_ns: AtomicU64,
///     number: AtomicU32,
///     rest: AtomicU32 as unused,
/// });
/// ```
#[macro_export]
macro_rules! mirror {
    ($name:ident of $kernels:ty { $($field:ident: $number:ty $(as $its:ident)?,)* }) => {
        #[repr(C)]
        struct $name { $($field: $number,)* }

        const _: () = assert!(size_of::<$name>() == size_of::<$kernels>());
        // So no byte is between two numbers.
        const _: () = assert!(0 $(+ size_of::<$number>())* == size_of::<$name>());
        $($crate::mirror!(@check $name ($kernels) $field $($its)?);)*

        // SAFETY: it is laid out as C does it, and each of its bytes belongs to an atomic number.
        unsafe impl $crate::AtomicNumbers for $name where $($number: $crate::AtomicNumbers),* {}
    };
    (@check $name:ident ($kernels:ty) $field:ident) => {
        const _: () = assert!(::std::mem::offset_of!($name, $field) == ::std::mem::offset_of!($kernels, $field));
    };
    (@check $name:ident ($kernels:ty) $field:ident unused) => {};
}

/// An array of them in a map. The mapping keeps the memory, whether or not the program is still loaded.
#[derive(Debug)]
pub struct SharedNumbers<T> {
    mapping: Mapping,
    count: usize,
    of: PhantomData<T>,
}

impl<T: AtomicNumbers> SharedNumbers<T> {
    /// The first `count` of a map.
    ///
    /// # Errors
    ///
    /// The kernel's answer; of a map of eBPF's, it maps no more than the map has. [`io::ErrorKind::InvalidInput`] for more than there can
    /// be.
    pub fn of(map: impl AsFd, count: usize) -> io::Result<SharedNumbers<T>> {
        let bytes = count.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::InvalidInput)?;
        let mapping = Mapping::of(map, bytes)?;
        Ok(SharedNumbers { mapping, count, of: PhantomData })
    }

    /// From here on these are numbers of this process's own, all zero, also for a thread that still has a borrow of them. Needs Linux 6.12.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn come_off(&self) -> io::Result<()> {
        self.mapping.come_off()
    }

    /// All of them.
    pub fn all(&self) -> &[T] {
        // SAFETY: that number is mapped as long as the borrow lives, from the begin of a page. All bytes are
        // atomic numbers. The program's loads and stores may be plain, but of a whole aligned number each,
        // which the processor does not tear.
        unsafe { std::slice::from_raw_parts(self.mapping.base().cast().as_ptr(), self.count) }
    }
}
