//! Maps: read and written by system calls, or mapped into this process. Handed out by the
//! skeletons' macros (`skeleton.rs`), and by `record/maps.rs` for programs of schemata.

use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;

use libbpf_rs::{Map, MapCore, MapFlags};
use rustix::mm::{MapFlags as Share, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::KernelError;
use crate::plain::{Plain, bytes, value};

/// A map of a loaded object, with its name for messages.
#[derive(Clone, Copy)]
pub(crate) struct NamedMap<'a> {
    pub(crate) name: &'static str,
    pub(crate) map: &'a Map<'a>,
}

impl NamedMap<'_> {
    /// Maps the first `bytes` bytes of the map into this process.
    pub(crate) fn mapped(&self, bytes: usize) -> Result<Mapping, KernelError> {
        Mapping::of(self.map.as_fd(), bytes).map_err(|source| KernelError::Map { map: self.name, source })
    }

    fn failed(&self, error: libbpf_rs::Error) -> KernelError {
        KernelError::Map { map: self.name, source: io::Error::other(format!("{error:#}")) }
    }
}

/// A map whose elements are read and written by system calls.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a, K, V> {
    map: NamedMap<'a>,
    types: PhantomData<fn(K) -> V>,
}

impl<'a, K: Plain, V: Plain> Table<'a, K, V> {
    /// With the types that `table!` finds in the declaration of the map.
    pub(crate) fn declared<Maps>(
        map: NamedMap<'a>,
        _types: fn(&Maps) -> (*mut K, *mut V),
    ) -> Table<'a, K, V> {
        Table::of(map)
    }

    pub(crate) fn of(map: NamedMap<'a>) -> Table<'a, K, V> {
        debug_assert_eq!(map.map.key_size() as usize, size_of::<K>(), "keys of {}", map.name);
        debug_assert_eq!(map.map.value_size() as usize, size_of::<V>(), "values of {}", map.name);
        Table { map, types: PhantomData }
    }

    /// Writes one element.
    pub(crate) fn write(&self, key: K, value: &V) -> Result<(), KernelError> {
        let written = self.map.map.update(bytes(&key), bytes(value), MapFlags::ANY);
        written.map_err(|error| self.map.failed(error))
    }

    /// Reads one element; `None` if there is none.
    pub(crate) fn read(&self, key: K) -> Result<Option<V>, KernelError> {
        let element = self.map.map.lookup(bytes(&key), MapFlags::ANY);
        Ok(element.map_err(|error| self.map.failed(error))?.as_deref().and_then(value))
    }

    /// Removes one element.
    pub(crate) fn delete(&self, key: K) -> Result<(), KernelError> {
        self.map.map.delete(bytes(&key)).map_err(|error| self.map.failed(error))
    }

    /// The keys of all elements. Where elements come and go meanwhile, some may be missing or appear twice.
    pub(crate) fn keys(&self) -> impl Iterator<Item = K> + use<'a, K, V> {
        MapCore::keys(self.map.map).filter_map(|key| value(&key))
    }
}

impl<V: Plain> Table<'_, u32, V> {
    /// Writes the only element of a map that holds globals.
    pub(crate) fn write_all(&self, globals: &V) -> Result<(), KernelError> {
        self.write(0, globals)
    }

    /// Reads the only element of a map that holds globals.
    pub(crate) fn read_all(&self) -> Result<V, KernelError> {
        // A map that holds globals always has its one element.
        let absent = KernelError::Map { map: self.map.name, source: io::ErrorKind::NotFound.into() };
        self.read(0)?.ok_or(absent)
    }
}

/// Memory that is shared with the kernel.
///
/// Invariant: `base` points to `bytes` bytes that stay mapped until drop.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; its users access it by atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first bytes of a map into this process, for reading and writing. It stays mapped when the
    /// map's owner goes.
    ///
    /// # Errors
    ///
    /// The kernel's answer, for example because this kind of map has no memory to share.
    pub fn of(map: impl AsFd, bytes: usize) -> io::Result<Mapping> {
        Mapping::new(map.as_fd(), 0, bytes, ProtFlags::READ | ProtFlags::WRITE)
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

    /// From here on there is other memory here, of zeros, which is shared with no other process. A thread that still uses this
    /// mapping sees and changes nothing of what it was of. Needs Linux 6.12: if there is no memory, earlier ones leave nothing there.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub(crate) fn come_off(&self) -> io::Result<()> {
        let (access, share) = (ProtFlags::READ | ProtFlags::WRITE, Share::PRIVATE | Share::FIXED);
        let base = self.base.as_ptr().cast::<c_void>();
        // SAFETY: the range is this mapping's own and stays mapped, also if the call fails (Linux 6.12). Its users access it by atomics, to which it is as if another
        // process had written zeros.
        unsafe { mmap_anonymous(base, self.bytes, access, share | Share::NORESERVE) }?;
        Ok(())
    }

    /// Where it begins, at the begin of a page.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped in `new`, and no borrow of it outlives this. If the call fails, it stays
        // mapped.
        let _ = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), self.bytes) };
    }
}
