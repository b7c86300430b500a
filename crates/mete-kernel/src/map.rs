//! Maps: found by name, written through system calls, or mapped into this process.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;

use libbpf_rs::{MapCore, MapFlags, Object};
use rustix::mm::{MapFlags as Share, ProtFlags, mmap, munmap};

use crate::KernelError;

/// The map of this name. Every name is one of this crate's own objects'.
pub(crate) fn find<'a>(object: &'a Object, name: &'static str) -> Result<libbpf_rs::Map<'a>, KernelError> {
    let absent = || KernelError::Map { map: name, source: io::ErrorKind::NotFound.into() };
    object.maps().find(|map| map.name() == name).ok_or_else(absent)
}

/// Writes one element.
pub(crate) fn write(
    object: &Object,
    name: &'static str,
    key: &[u8],
    value: &[u8],
) -> Result<(), KernelError> {
    find(object, name)?.update(key, value, MapFlags::ANY).map_err(|e| failed(name, e))
}

/// Writes the only element of a map that holds global variables.
pub(crate) fn write_global(object: &Object, name: &'static str, value: &[u8]) -> Result<(), KernelError> {
    write(object, name, &0u32.to_ne_bytes(), value)
}

pub(crate) fn failed(map: &'static str, error: libbpf_rs::Error) -> KernelError {
    KernelError::Map { map, source: io::Error::other(error) }
}

/// Memory shared with the kernel.
///
/// Invariant: `base` points to `bytes` bytes that stay mapped until drop.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; access is by the users' atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of a map of this object.
    pub(crate) fn of_map(object: &Object, name: &'static str, bytes: usize) -> Result<Mapping, KernelError> {
        let both = ProtFlags::READ | ProtFlags::WRITE;
        Mapping::new(find(object, name)?.as_fd(), 0, bytes, both)
            .map_err(|source| KernelError::Map { map: name, source })
    }

    pub(crate) fn new(
        fd: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
        protection: ProtFlags,
    ) -> io::Result<Mapping> {
        // SAFETY: a fresh mapping at an address that the kernel chooses overlaps nothing.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, protection, Share::SHARED, fd, offset) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { base, bytes })
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and whoever borrowed it is gone. Failure leaves it mapped.
        let _ = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), self.bytes) };
    }
}
