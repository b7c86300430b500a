//! From a probe to a row: which memory, which domain, which of the two handlers.
//!
//! Where glibc has registered restartable sequences, rows are committed by
//! [`mete_log::rseq`] (design decision D3); otherwise by the portable handler, which takes the
//! file by one locked instruction.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};

use mete_log::clock::UserClock;
use mete_log::{Area, DomainId, Outcome, Record, Shape};

use crate::domain;
use crate::event::RawEvent;
use crate::sequences;

/// The shape of a component's areas. A constant, because the handler's time goes into such sums.
pub(crate) const SHAPE: Shape = Shape::COMPONENT;

/// The log areas that rows go to. Once published, a value of this type lives for ever and so does
/// the range of addresses that it names, because a thread may be stopped anywhere in a handler.
#[derive(Debug)]
pub(crate) struct Areas {
    base: NonNull<u8>,
    processors: u32,
    #[cfg(target_arch = "x86_64")]
    target: mete_log::rseq::Target,
}

// SAFETY: the areas are reached by atomics only (see `mete_log::Area`).
unsafe impl Sync for Areas {}

impl Areas {
    /// # Safety
    ///
    /// `processors` areas of `SHAPE` must lie at `base`, mapped readable and writable for ever.
    pub const unsafe fn new(base: NonNull<u8>, processors: u32) -> Areas {
        Areas {
            base,
            processors,
            #[cfg(target_arch = "x86_64")]
            // SAFETY: passed on from the caller.
            target: unsafe { mete_log::rseq::Target::new(base, processors) },
        }
    }

    fn area(&self, processor: u32) -> Area<'_> {
        let offset = (processor % self.processors) as usize * SHAPE.area_bytes();
        // SAFETY: one of the areas that `new`'s caller vouched for.
        unsafe { Area::new(self.base.byte_add(offset), SHAPE) }
    }

    /// An area for a row of the portable handler: the current processor's, or the next one whose
    /// file is not just being written by a thread that was preempted there.
    fn free_area(&self, domain: DomainId, event: &RawEvent) -> Option<Area<'_>> {
        if self.processors == 0 {
            return None;
        }
        let here = sequences::processor();
        let is_free = |area: &Area<'_>| {
            let selector = area.pair(domain, event.id()).selector.load(Ordering::Relaxed);
            area.register(selector).busy.load(Ordering::Relaxed) == 0
        };
        let mut areas = (0..self.processors).map(|nth| self.area(here.wrapping_add(nth)));
        areas.find(is_free).or_else(|| Some(self.area(here)))
    }
}

/// Nowhere to log: no processor.
//
// SAFETY: there are no areas that would have to be anywhere.
static NOWHERE: Areas = unsafe { Areas::new(NonNull::dangling(), 0) };
static AREAS: AtomicPtr<Areas> = AtomicPtr::new((&raw const NOWHERE).cast_mut());

/// Directs rows to `areas` from now on.
pub(crate) fn direct_to(areas: &'static Areas) {
    // Release: whoever loads the pointer finds what it points to.
    AREAS.store(core::ptr::from_ref(areas).cast_mut(), Ordering::Release);
}

#[inline(always)]
fn areas() -> &'static Areas {
    // SAFETY: only ever `NOWHERE` or what `direct_to` was given: static references.
    unsafe { &*AREAS.load(Ordering::Acquire) }
}

/// One occurrence: the whole handler.
#[inline(never)]
pub(crate) fn log(event: &RawEvent, correspondent: DomainId, counter: u64) {
    let record = Record { event: event.id(), domain: domain::current(), correspondent, counter };
    let areas = areas();
    #[cfg(target_arch = "x86_64")]
    if let Some(abi) = sequences::abi() {
        // SAFETY: the calling thread's own structure, registered by glibc.
        unsafe { mete_log::rseq::log(&areas.target, abi, &UserClock, record) };
        return;
    }
    log_locked(areas, event, record);
}

/// The entry into a phase: whether its exit is to log.
#[inline(never)]
pub(crate) fn enter(event: &RawEvent) -> bool {
    let (areas, domain) = (areas(), domain::current());
    #[cfg(target_arch = "x86_64")]
    if let Some(abi) = sequences::abi() {
        // SAFETY: as in `log`.
        return unsafe { mete_log::rseq::enter(&areas.target, abi, domain, event.id()) };
    }
    enter_locked(areas, event, domain).unwrap_or(false)
}

/// The exit from a phase whose entry said that it logs.
#[inline(never)]
pub(crate) fn exit(event: &RawEvent, correspondent: DomainId, delta: u64) {
    let record = Record { event: event.id(), domain: domain::current(), correspondent, counter: delta };
    let areas = areas();
    #[cfg(target_arch = "x86_64")]
    if let Some(abi) = sequences::abi() {
        // SAFETY: as in `log`.
        unsafe { mete_log::rseq::exit(&areas.target, abi, &UserClock, record) };
        return;
    }
    exit_locked(areas, event, record);
}

#[cold]
#[inline(never)]
fn log_locked(areas: &Areas, event: &RawEvent, record: Record) -> Option<Outcome> {
    domain::as_writer(|| {
        let area = areas.free_area(record.domain, event)?;
        Some(mete_log::handler::log(area, &UserClock, record))
    })
}

#[cold]
#[inline(never)]
fn enter_locked(areas: &Areas, event: &RawEvent, domain: DomainId) -> Option<bool> {
    domain::as_writer(|| {
        let area = areas.free_area(domain, event)?;
        Some(mete_log::handler::enter(area, domain, event.id()))
    })
}

#[cold]
#[inline(never)]
fn exit_locked(areas: &Areas, event: &RawEvent, record: Record) -> Option<Outcome> {
    domain::as_writer(|| {
        let area = areas.free_area(record.domain, event)?;
        Some(mete_log::handler::exit(area, &UserClock, record))
    })
}
