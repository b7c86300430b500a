//! The component's side of the log memory that a scheduler provides (LOG-12, design decision D7).
//!
//! A thread can be stopped anywhere inside a handler while schedulers come and go. So the memory is always
//! mapped over a range of addresses that stays mapped for ever. Between two schedulers the range has private
//! zero pages, in which every log file is off. A row that a late writer stores there does no harm.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::os::fd::OwnedFd;

use mete_log::bindings::{Bindings, SLOTS};
use mete_log::{DomainId, Region, region};
use rustix::mm::{MapFlags, ProtFlags};

use crate::handler::{self, LogAreas, SHAPE};
use crate::processors::configured_processors;
use crate::{debug, sequences, slot};

/// The most ranges of a process: it has one for each number of processors that a scheduler chose.
const MAX_RANGES: usize = 16;

/// A range of addresses that is mapped for ever.
#[derive(Debug)]
struct AddressRange {
    base: NonNull<u8>,
    processors: u32,
    areas: &'static LogAreas,
    /// A late writer may still be in it, so it is not used again.
    is_spoilt: bool,
}

/// All ranges, and the one in use.
#[derive(Debug)]
pub(crate) struct LogMemory {
    ranges: Vec<AddressRange>,
    current: Option<usize>,
}

// SAFETY: the ranges are accessed by atomics only.
unsafe impl Send for LogMemory {}

/// The bindings table of the current region, or null: for [`domain_of_process`].
static BINDINGS: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());

/// The domain of a process as the scheduler publishes it. A driver names it as the correspondent (thesis
/// §4.4.2). `None` without a scheduler, or if the scheduler has not bound this process.
pub fn domain_of_process(pid: u32) -> Option<DomainId> {
    // Acquire: pairs with the release in `attach`, so the table is mapped.
    let table = BINDINGS.load(Ordering::Acquire);
    if table.is_null() {
        return None;
    }
    // SAFETY: the table comes first in a range, which is mapped for ever. Its words are atomic.
    let slots = unsafe { core::slice::from_raw_parts(table, SLOTS) };
    Bindings::new(slots).domain_of(pid)
}

impl LogMemory {
    /// No memory yet.
    pub const fn new() -> LogMemory {
        LogMemory { ranges: Vec::new(), current: None }
    }

    /// Whether a scheduler's memory is in place.
    pub fn is_attached(&self) -> bool {
        self.current.is_some()
    }

    /// Maps a scheduler's memory and directs the rows there. False if the memory is not suitable.
    pub fn attach(&mut self, file: OwnedFd, processors: u32) -> bool {
        // A thread on a processor without an area could only drop its rows.
        if (processors as usize) < configured_processors() {
            debug::tell(|| format!("refused log memory for {processors} processors: this machine has more"));
            return false;
        }
        let Some(current) = self.range_for(processors) else { return false };
        let range = &self.ranges[current];
        // SAFETY: the range belongs to this module. It has private zero pages, or the memory of a scheduler
        // that leaves.
        match unsafe { Region::attach_at(file, SHAPE, processors as usize, range.base) } {
            Ok(region) => region.leave_mapped(),
            Err(error) => {
                debug::tell(|| error.to_string());
                return false;
            }
        }
        handler::direct_to(range.areas);
        // Release: the memory is mapped before a thread finds the table.
        BINDINGS.store(range.base.as_ptr().cast(), Ordering::Release);
        self.current = Some(current);
        true
    }

    /// Replaces the scheduler's memory by private zero pages. The probes are off by now.
    pub fn detach(&mut self) {
        let Some(current) = self.current.take() else { return };
        let range = &mut self.ranges[current];
        // A thread that has loaded the pointer before finds zeroes in the range: no bindings.
        BINDINGS.store(core::ptr::null_mut(), Ordering::Release);
        // If the kernel refuses, the old mapping stays, which is as safe.
        range.is_spoilt = zero_pages(Some(range.base), range.bytes()).is_none();
        // A sequence that has already read words of the old memory must not go on in the new one.
        sequences::restart_all();
        // Threads in the portable handler cannot be restarted, so they are waited for.
        range.is_spoilt |= !slot::wait_for_writers();
    }

    /// A range of this size that can be used: a known one, or a new one.
    fn range_for(&mut self, processors: u32) -> Option<usize> {
        let mut ranges = self.ranges.iter();
        let known = ranges.position(|range| !range.is_spoilt && range.processors == processors);
        known.or_else(|| self.reserve(processors))
    }

    fn reserve(&mut self, processors: u32) -> Option<usize> {
        if self.ranges.len() >= MAX_RANGES || !(1..=4096).contains(&processors) {
            return None;
        }
        let base = zero_pages(None, Region::bytes_for(SHAPE, processors as usize))?;
        // SAFETY: the areas follow the bindings table in a range that is mapped for ever.
        let areas = unsafe { LogAreas::new(base.byte_add(region::areas_offset()), processors) };
        // For ever, because a thread can be stopped with a reference to it.
        let areas = Box::leak(Box::new(areas));
        self.ranges.push(AddressRange { base, processors, areas, is_spoilt: false });
        Some(self.ranges.len() - 1)
    }
}

impl AddressRange {
    fn bytes(&self) -> usize {
        Region::bytes_for(SHAPE, self.processors as usize)
    }
}

/// Private zero pages, anywhere or over a range.
fn zero_pages(at: Option<NonNull<u8>>, bytes: usize) -> Option<NonNull<u8>> {
    let fixed = if at.is_some() { MapFlags::FIXED } else { MapFlags::empty() };
    let address = at.map_or(core::ptr::null_mut(), |at| at.as_ptr().cast());
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | fixed;
    // SAFETY: this is a new mapping, or one over a range of this module.
    let base = unsafe { rustix::mm::mmap_anonymous(address, bytes, protection, flags) }.ok()?;
    NonNull::new(base.cast())
}
