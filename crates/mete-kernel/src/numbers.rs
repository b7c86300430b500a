//! Numbers that a program in the kernel and this process both read and write, in a map that is mapped into
//! this process.

use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::Mapping;

/// What consists of nothing but atomic numbers.
///
/// # Safety
///
/// Every byte of the type belongs to an atomic number, and the type is laid out as C does it.
pub unsafe trait AtomicNumbers: Sync {}

// SAFETY: it is one.
unsafe impl AtomicNumbers for AtomicU32 {}
// SAFETY: it is one.
unsafe impl AtomicNumbers for AtomicU64 {}

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
    /// The kernel's answer.
    pub fn of(map: impl AsFd, count: usize) -> io::Result<SharedNumbers<T>> {
        let mapping = Mapping::of(map, count * size_of::<T>())?;
        Ok(SharedNumbers { mapping, count, of: PhantomData })
    }

    /// All of them.
    pub fn all(&self) -> &[T] {
        // SAFETY: that number is mapped as long as the borrow lives, from the begin of a page. All bytes are
        // atomic numbers. The program's loads and stores may be plain, but of a whole aligned number each,
        // which the processor does not tear.
        unsafe { std::slice::from_raw_parts(self.mapping.base().cast().as_ptr(), self.count) }
    }
}
