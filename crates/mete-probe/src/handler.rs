//! From a probe to a row: chooses the memory, the domain, and one of the two handlers.
//!
//! Where glibc has registered restartable sequences, [`mete_log::rseq`] commits the rows (design decision
//! D3). Elsewhere the portable handler does, which takes the file by one locked instruction.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};

use mete_log::clock::UserClock;
use mete_log::{Area, DomainId, EventId, Record, Shape};

use crate::event::RawEvent;
use crate::sequences;
use crate::slot::{self, ThreadSlot};

/// The shape of a component's areas. It is a constant, because the handler spends its time on computing
/// addresses from it.
pub(crate) const SHAPE: Shape = Shape::COMPONENT;

/// The log areas to which rows go. Once published, a value of this type lives for ever, and so does the range
/// of addresses that it names, because a thread can be stopped anywhere in a handler.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LogAreas {
    // First, so that its address is the value's own.
    #[cfg(target_arch = "x86_64")]
    target: mete_log::rseq::Target,
    base: NonNull<u8>,
    processors: u32,
}

// SAFETY: the areas are reached by atomics only (see `mete_log::Area`).
unsafe impl Sync for LogAreas {}

impl LogAreas {
    /// # Safety
    ///
    /// `processors` areas of `SHAPE` must be at `base`, mapped readable and writable for ever.
    pub const unsafe fn new(base: NonNull<u8>, processors: u32) -> LogAreas {
        LogAreas {
            base,
            processors,
            #[cfg(target_arch = "x86_64")]
            // SAFETY: passed on from the caller.
            target: unsafe { mete_log::rseq::Target::new(base, processors) },
        }
    }

    fn area(&self, processor: u32) -> Area<'_> {
        let offset = (processor % self.processors) as usize * SHAPE.area_bytes();
        // SAFETY: the area is one of those that `new`'s caller promised.
        unsafe { Area::new(self.base.byte_add(offset), SHAPE) }
    }

    /// An area for a row of the portable handler: the current processor's, or the next one whose file is not
    /// in use. A thread that was preempted in the middle of a row holds its file.
    fn free_area(&self, domain: DomainId, event: EventId) -> Option<Area<'_>> {
        if self.processors == 0 {
            return None;
        }
        let here = sequences::processor();
        let mut areas = (0..self.processors).map(|nth| self.area(here.wrapping_add(nth)));
        // If none is free, the handler refuses the row in this processor's area, and counts it there.
        areas.find(|area| is_free(area, domain, event)).or_else(|| Some(self.area(here)))
    }
}

/// Whether no thread is writing a row into the file of a pair.
fn is_free(area: &Area<'_>, domain: DomainId, event: EventId) -> bool {
    // Relaxed: only a hint, because the handler takes the file by a locked instruction.
    area.register(area.pair(domain, event).file()).busy.load(Ordering::Relaxed) == 0
}

/// The areas of a component without memory: there are none, so nothing is logged.
//
// SAFETY: there are no areas, so none has to be mapped.
static NOWHERE: LogAreas = unsafe { LogAreas::new(NonNull::dangling(), 0) };
static AREAS: AtomicPtr<LogAreas> = AtomicPtr::new((&raw const NOWHERE).cast_mut());

/// Directs rows to `areas` from now on.
pub(crate) fn direct_to(areas: &'static LogAreas) {
    // Release: a thread that loads the pointer finds the value that it points to.
    AREAS.store(core::ptr::from_ref(areas).cast_mut(), Ordering::Release);
}

#[inline(always)]
fn areas() -> &'static LogAreas {
    // SAFETY: the pointer is always `NOWHERE` or what `direct_to` was given: static references. Acquire:
    // pairs with `direct_to`; on x86-64 it is an ordinary load.
    unsafe { &*AREAS.load(Ordering::Acquire) }
}

/// Logs one occurrence: the whole handler.
#[inline(never)]
pub(crate) fn log(event: &RawEvent, correspondent: DomainId, counter: u64) {
    match sequenced() {
        Some(slot) => log_in_sequence(slot, event, correspondent, counter),
        None => log_slowly(event, correspondent, counter),
    }
}

/// The entry into a phase. Answers whether its exit is to log.
#[inline(never)]
pub(crate) fn enter(event: &RawEvent) -> bool {
    match sequenced() {
        Some(slot) => enter_in_sequence(slot, event),
        None => enter_slowly(event),
    }
}

/// The exit from a phase whose entry answered that it logs.
#[inline(never)]
pub(crate) fn exit(event: &RawEvent, correspondent: DomainId, delta: u64) {
    match sequenced() {
        Some(slot) => exit_in_sequence(slot, event, correspondent, delta),
        None => exit_slowly(event, correspondent, delta),
    }
}

/// A thread's slot and its rseq structure.
#[cfg(target_arch = "x86_64")]
type Sequenced = (&'static ThreadSlot, NonNull<mete_log::rseq::Abi>);
/// There are none here.
#[cfg(not(target_arch = "x86_64"))]
type Sequenced = core::convert::Infallible;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sequenced() -> Option<Sequenced> {
    let slot = slot::present();
    Some((slot, slot.abi()?))
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn log_in_sequence((slot, abi): Sequenced, event: &RawEvent, correspondent: DomainId, counter: u64) {
    let record = record(slot, event, correspondent, counter);
    // SAFETY: the structure is the calling thread's own, registered by glibc.
    unsafe { mete_log::rseq::log(&areas().target, abi.as_ptr(), &UserClock, record) };
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn enter_in_sequence((slot, abi): Sequenced, event: &RawEvent) -> bool {
    // SAFETY: as in `log_in_sequence`.
    unsafe { mete_log::rseq::enter(&areas().target, abi.as_ptr(), slot.domain(), event.id()) }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn exit_in_sequence((slot, abi): Sequenced, event: &RawEvent, correspondent: DomainId, delta: u64) {
    let record = record(slot, event, correspondent, delta);
    // SAFETY: as in `log_in_sequence`.
    unsafe { mete_log::rseq::exit(&areas().target, abi.as_ptr(), &UserClock, record) };
}

#[cfg(not(target_arch = "x86_64"))]
use without_sequences::{enter_in_sequence, exit_in_sequence, log_in_sequence, sequenced};

#[cfg(not(target_arch = "x86_64"))]
mod without_sequences {
    use super::{DomainId, RawEvent, Sequenced};

    pub(super) fn sequenced() -> Option<Sequenced> {
        None
    }

    pub(super) fn log_in_sequence(none: Sequenced, _: &RawEvent, _: DomainId, _: u64) {
        match none {}
    }

    pub(super) fn enter_in_sequence(none: Sequenced, _: &RawEvent) -> bool {
        match none {}
    }

    pub(super) fn exit_in_sequence(none: Sequenced, _: &RawEvent, _: DomainId, _: u64) {
        match none {}
    }
}

#[inline(always)]
fn record(slot: &ThreadSlot, event: &RawEvent, correspondent: DomainId, counter: u64) -> Record {
    Record { event: event.id(), domain: slot.domain(), correspondent, counter }
}

/// Logs a thread's first event, at which the thread finds out whether it has sequences, and each event of a
/// thread without them.
#[cold]
#[inline(never)]
fn log_slowly(event: &RawEvent, correspondent: DomainId, counter: u64) {
    let slot = slot::mine();
    if let Some(slot) = sequenced() {
        return log_in_sequence(slot, event, correspondent, counter);
    }
    let record = record(slot, event, correspondent, counter);
    in_locked_area(slot, event, |area| mete_log::handler::log(area, &UserClock, record));
}

#[cold]
#[inline(never)]
fn enter_slowly(event: &RawEvent) -> bool {
    let slot = slot::mine();
    if let Some(slot) = sequenced() {
        return enter_in_sequence(slot, event);
    }
    let is_to_log =
        in_locked_area(slot, event, |area| mete_log::handler::enter(area, slot.domain(), event.id()));
    is_to_log.unwrap_or(false)
}

#[cold]
#[inline(never)]
fn exit_slowly(event: &RawEvent, correspondent: DomainId, delta: u64) {
    let slot = slot::mine();
    if let Some(slot) = sequenced() {
        return exit_in_sequence(slot, event, correspondent, delta);
    }
    let record = record(slot, event, correspondent, delta);
    in_locked_area(slot, event, |area| mete_log::handler::exit(area, &UserClock, record));
}

/// Runs the portable handler, unless other threads of this process use sequences, because these do not look
/// at locks. A thread that has no sequences in such a process (made by a bare clone) has its rows refused.
fn in_locked_area<T>(slot: &ThreadSlot, event: &RawEvent, run: impl FnOnce(Area<'_>) -> T) -> Option<T> {
    slot.as_writer(|| {
        let area = areas().free_area(slot.domain(), event.id())?;
        if sequences::are_in_use() {
            refuse(area, slot.domain(), event.id());
            return None;
        }
        Some(run(area))
    })
}

/// Counts a row as refused.
fn refuse(area: Area<'_>, domain: DomainId, event: EventId) {
    let register = area.register(area.pair(domain, event).file());
    if register.control().is_enabled() {
        // Relaxed: a count on its own. By a locked instruction, because other threads count there, too.
        register.lost.fetch_add(1, Ordering::Relaxed);
    }
}
