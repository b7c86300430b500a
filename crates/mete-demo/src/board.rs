//! The board: pages of counters that the parts write and the demo reads. Messages instead would be scheduled,
//! too, and so change what is measured.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

use crate::latencies::{self, BUCKETS, Latencies};

/// Places on the board.
pub const PLACES: usize = 64;
/// Bytes of the board.
pub const BYTES: usize = PLACES * size_of::<Counts>();

/// What one part counts, on cache lines of its own.
#[repr(C, align(64))]
pub struct Counts {
    /// Requests answered.
    pub requests: AtomicU64,
    /// Of these, requests whose two ends ran on different processors.
    pub crossings: AtomicU64,
    /// Requests by the time that they took. Clients and the asker count it.
    latencies: [AtomicU64; BUCKETS],
}

impl Counts {
    /// Counts one request.
    pub fn count(&self, crossed: bool) {
        // Relaxed: the counters order no other memory; the demo reads sums.
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.crossings.fetch_add(u64::from(crossed), Ordering::Relaxed);
    }

    /// Counts how long a request took.
    pub fn took(&self, ns: u64) {
        self.latencies[latencies::bucket(ns)].fetch_add(1, Ordering::Relaxed);
    }

    /// How long requests took so far.
    pub fn latencies(&self) -> Latencies {
        Latencies(std::array::from_fn(|bucket| self.latencies[bucket].load(Ordering::Relaxed)))
    }
}

/// The mapped pages. They stay mapped until the process ends.
#[derive(Clone, Copy)]
pub struct Board(&'static [Counts; PLACES]);

impl Board {
    /// Makes a board and returns its memory file, to be inherited by the parts.
    pub fn create() -> io::Result<(Board, OwnedFd)> {
        // Not close-on-exec: the parts inherit it.
        let file = rustix::fs::memfd_create("mete-demo-board", rustix::fs::MemfdFlags::empty())?;
        rustix::fs::ftruncate(&file, BYTES as u64)?;
        Ok((Board::map(&file)?, file))
    }

    /// The board whose descriptor the demo passed on.
    pub fn inherited(descriptor: Option<i32>) -> io::Result<Board> {
        let missing = || {
            io::Error::new(io::ErrorKind::InvalidInput, "this part needs --board, which `mete demo` passes")
        };
        let descriptor = descriptor.filter(|&descriptor| descriptor > 2).ok_or_else(missing)?;
        // SAFETY: the demo opened it for this process, and no other code in this process uses or closes it.
        let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
        if rustix::fs::fstat(&file)?.st_size < BYTES as i64 {
            return Err(missing());
        }
        Board::map(&file)
    }

    fn map(file: &OwnedFd) -> io::Result<Board> {
        let file: BorrowedFd<'_> = std::os::fd::AsFd::as_fd(file);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new shared mapping of a file that has BYTES bytes; it is never unmapped.
        let base =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), BYTES, protection, MapFlags::SHARED, file, 0)? };
        let base = NonNull::new(base.cast::<[Counts; PLACES]>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the memory is page-aligned, BYTES long and never unmapped, and `Counts` consists of
        // atomics.
        Ok(Board(unsafe { base.as_ref() }))
    }

    /// A part's counts; the number is taken modulo the number of places.
    pub fn counts(&self, place: usize) -> &'static Counts {
        &self.0[place % PLACES]
    }
}
