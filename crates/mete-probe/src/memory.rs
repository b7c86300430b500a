//! The component's side of the log memory that a scheduler provides (LOG-12, design decision D7).
//!
//! A thread may be stopped anywhere inside a handler while schedulers come and go. So the memory
//! is always mapped over a range of addresses that stays mapped for ever: between schedulers by
//! private zero pages, in which every log file is switched off. A row that a late writer puts
//! there harms nobody.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::os::fd::OwnedFd;

use mete_log::bindings::{Bindings, SLOTS};
use mete_log::{DomainId, Region, region};
use rustix::mm::{MapFlags, ProtFlags};

use crate::attach::configured_processors;
use crate::handler::{self, Areas, SHAPE};
use crate::{debug, sequences, slot};

/// Ranges that a process may come to hold, one for each number of processors that a scheduler chose.
const MAX_RANGES: usize = 16;
/// The file system of memory files with ordinary pages. On huge ones, touching memory can fail.
const TMPFS: i128 = 0x0102_1994;

/// A range of addresses that is mapped for ever.
#[derive(Debug)]
struct Range {
    base: NonNull<u8>,
    processors: u32,
    areas: &'static Areas,
    /// A late writer may still be in it: it is not used again.
    is_spoilt: bool,
}

/// All ranges, and the one in use.
#[derive(Debug)]
pub(crate) struct Memory {
    ranges: Vec<Range>,
    current: Option<usize>,
}

// SAFETY: the ranges are reached by atomics only.
unsafe impl Send for Memory {}

/// The bindings table of the current region, or null: for [`domain_of_process`].
static BINDINGS: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());

/// The domain of a process as the scheduler publishes it: whom a driver names as correspondent
/// (thesis §4.4.2). `None` without a scheduler, or if it has bound no such process.
pub fn domain_of_process(pid: u32) -> Option<DomainId> {
    let table = BINDINGS.load(Ordering::Acquire);
    if table.is_null() {
        return None;
    }
    // SAFETY: the table begins a range, which is mapped for ever; its words are atomic.
    let slots = unsafe { core::slice::from_raw_parts(table, SLOTS) };
    Bindings::new(slots).domain_of(pid)
}

impl Memory {
    /// None yet.
    pub const fn new() -> Memory {
        Memory { ranges: Vec::new(), current: None }
    }

    /// Whether a scheduler's memory is in place.
    pub fn is_attached(&self) -> bool {
        self.current.is_some()
    }

    /// Maps a scheduler's memory and directs the rows there. False if it is not fit for that.
    pub fn attach(&mut self, file: OwnedFd, processors: u32) -> bool {
        if !is_plain_memory(&file) {
            debug::tell(|| "refused log memory that is not an ordinary memory file".into());
            return false;
        }
        // A thread on a processor without an area could only drop its rows.
        if (processors as usize) < configured_processors() {
            debug::tell(|| format!("refused log memory for {processors} processors: there are more"));
            return false;
        }
        let Some(current) = self.range_for(processors) else { return false };
        let range = &self.ranges[current];
        // SAFETY: the range is ours and holds private zero pages, or a leaving scheduler's.
        match unsafe { Region::attach_at(file, SHAPE, processors as usize, range.base) } {
            Ok(region) => region.leave_mapped(),
            Err(error) => {
                debug::tell(|| error.to_string());
                return false;
            }
        }
        handler::direct_to(range.areas);
        BINDINGS.store(range.base.as_ptr().cast(), Ordering::Release);
        self.current = Some(current);
        true
    }

    /// Replaces the scheduler's memory by private zero pages. Probes are off by now.
    pub fn detach(&mut self) {
        let Some(current) = self.current.take() else { return };
        let range = &mut self.ranges[current];
        BINDINGS.store(core::ptr::null_mut(), Ordering::Release);
        // Keeps the old mapping if the kernel refuses, which is as safe.
        range.is_spoilt = zero_pages(Some(range.base), range.bytes()).is_none();
        sequences::restart_all();
        range.is_spoilt |= !slot::wait_for_writers();
    }

    fn range_for(&mut self, processors: u32) -> Option<usize> {
        let fits = |range: &Range| !range.is_spoilt && range.processors == processors;
        let known = self.ranges.iter().position(fits);
        known.or_else(|| self.reserve(processors))
    }

    fn reserve(&mut self, processors: u32) -> Option<usize> {
        if self.ranges.len() >= MAX_RANGES || !(1..=4096).contains(&processors) {
            return None;
        }
        let base = zero_pages(None, Region::bytes_for(SHAPE, processors as usize))?;
        // SAFETY: the areas lie behind the bindings table in a range that is mapped for ever.
        let areas = unsafe { Areas::new(base.byte_add(region::areas_offset()), processors) };
        let areas = Box::leak(Box::new(areas));
        self.ranges.push(Range { base, processors, areas, is_spoilt: false });
        Some(self.ranges.len() - 1)
    }
}

impl Range {
    fn bytes(&self) -> usize {
        Region::bytes_for(SHAPE, self.processors as usize)
    }
}

/// Whether touching the file's pages can only fail for want of memory.
fn is_plain_memory(file: &OwnedFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|system| i128::from(system.f_type) == TMPFS)
}

/// Private zero pages, anywhere or over a range.
fn zero_pages(at: Option<NonNull<u8>>, bytes: usize) -> Option<NonNull<u8>> {
    let fixed = if at.is_some() { MapFlags::FIXED } else { MapFlags::empty() };
    let address = at.map_or(core::ptr::null_mut(), |at| at.as_ptr().cast());
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | fixed;
    // SAFETY: a new mapping, or one over a range that is this module's.
    let base = unsafe { rustix::mm::mmap_anonymous(address, bytes, protection, flags) }.ok()?;
    NonNull::new(base.cast())
}
