//! A view of one log area's memory. All access is by atomics and masked indices, so the view is safe to use
//! whatever the other side writes.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::control::Control;
use crate::layout::{self, Shape};
use crate::{DomainId, EventId, FileId};

/// One control register (thesis §4.3.3), a cache line.
#[repr(C, align(64))]
pub struct Register {
    /// The number of rows ever written. The producer writes it.
    pub index: AtomicU64,
    control: AtomicU64,
    /// The number of rows refused because the file was frozen or in use. The producer writes it.
    pub lost: AtomicU64,
    /// Non-zero while an interruptible producer writes a row. The producer writes it.
    pub busy: AtomicU32,
    /// Neither side reads it. The other side can write it all the same, so a shared reference must not lead
    /// to it as a plain word.
    _reserved: [AtomicU32; 9],
}

impl Register {
    /// The control word as it is now.
    #[inline(always)]
    pub fn control(&self) -> Control {
        // Acquire: pairs with `set_control`, so the rows of an adding file that were cleared for this
        // word are seen to be cleared. SeqCst: see `plan::Plan::apply`.
        Control::from_bits(self.control.load(Ordering::SeqCst))
    }

    /// Changes the control word. Producers obey it from their next row on.
    pub fn set_control(&self, control: Control) {
        // Release: a producer that sees the new word also sees that the rows were cleared for it. SeqCst: see
        // `plan::Plan::apply`.
        self.control.store(control.to_bits(), Ordering::SeqCst);
    }
}

/// One entry of the domain table: the file that an (event, domain) pair goes to, and how often (thesis
/// §4.3.4).
#[repr(C, align(8))]
pub struct Pair {
    /// The log file. The scheduler writes it.
    pub selector: AtomicU16,
    /// [`PAIR_KEEP_INTERNAL`](layout::PAIR_KEEP_INTERNAL). The scheduler writes it.
    pub flags: AtomicU16,
    /// The number of occurrences that make one row. The scheduler writes it.
    pub threshold: AtomicU32,
    /// Occurrences since the last row. The producer writes it.
    pub count: AtomicU32,
    /// Unused, as in [`Register`].
    _reserved: AtomicU32,
}

impl Pair {
    /// The log file that the selector names now. The area has it only if [`Area::register`] masks it.
    #[inline(always)]
    pub fn file(&self) -> FileId {
        // Relaxed: whichever file the selector names, its own control word decides what is written to it.
        FileId::new(self.selector.load(Ordering::Relaxed))
    }
}

/// One component's log on one processor.
///
/// Invariant, kept by [`Area::new`]: `base` points to `shape.area_bytes()` bytes, aligned to 64,
/// that stay mapped and writable for `'a` and are accessed only by atomics.
#[derive(Clone, Copy)]
pub struct Area<'a> {
    base: NonNull<u8>,
    shape: Shape,
    memory: PhantomData<&'a AtomicU64>,
}

// SAFETY: the view gives access through atomics alone (invariant of `Area`).
unsafe impl Send for Area<'_> {}
// SAFETY: as above.
unsafe impl Sync for Area<'_> {}

impl<'a> Area<'a> {
    /// A view of the area at `base`.
    ///
    /// # Safety
    ///
    /// `base` must point to `shape.area_bytes()` bytes, aligned to 64, that stay mapped readable and writable
    /// for `'a`, and that this process accesses only through atomics.
    pub const unsafe fn new(base: NonNull<u8>, shape: Shape) -> Area<'a> {
        Area { base, shape, memory: PhantomData }
    }

    /// The area's sizes. They are in private memory.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// The address at which the area begins.
    pub const fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Writes the header of a new, zeroed area. The scheduler does so before it hands the area over.
    pub fn initialise(&self, processor: u32) {
        let shape = u32::from_le_bytes(self.shape.to_bytes());
        let low = u64::from(shape) | u64::from(processor) << 32;
        // Relaxed: the magic, which is stored next, releases it.
        self.word(layout::HEADER_SHAPE).store(low, Ordering::Relaxed);
        // Release: a process that finds the magic also finds the rest of the header.
        self.word(layout::HEADER_MAGIC).store(layout::MAGIC, Ordering::Release);
    }

    /// Whether the header has the magic that [`Area::initialise`] wrote. This only finds mistakes.
    pub fn is_initialised(&self) -> bool {
        // Acquire: pairs with `initialise`.
        self.word(layout::HEADER_MAGIC).load(Ordering::Acquire) == layout::MAGIC
    }

    /// The control register of a file; the number is taken modulo [`Shape::files`].
    #[inline(always)]
    pub fn register(&self, file: FileId) -> &'a Register {
        let file = file.index() & (self.shape.files() - 1);
        let offset = layout::PAGE + file * layout::REGISTER_BYTES;
        // SAFETY: the number is masked, so the register is one of the area's (invariant of `Area`).
        unsafe { self.base.byte_add(offset).cast::<Register>().as_ref() }
    }

    /// The domain-table entry of a pair; both numbers are masked to the area's shape.
    #[inline(always)]
    pub fn pair(&self, domain: DomainId, event: EventId) -> &'a Pair {
        let domain = domain.index() & (self.shape.domains() - 1);
        let event = event.index() & (self.shape.events() - 1);
        let entry = domain << self.shape.events_log2() | event;
        let offset = self.shape.table_offset() + entry * layout::PAIR_BYTES;
        // SAFETY: both numbers are masked, so the entry is one of the area's table (invariant of `Area`).
        unsafe { self.base.byte_add(offset).cast::<Pair>().as_ref() }
    }

    /// What the scheduler writes of a pair, in one load: the selector in bits 0–15, the flags in 16–31, the
    /// threshold in 32–63.
    #[inline(always)]
    pub fn pair_word(&self, domain: DomainId, event: EventId) -> u64 {
        let pair = core::ptr::from_ref(self.pair(domain, event)).cast::<AtomicU64>();
        // SAFETY: a pair has 16 bytes and is aligned to 8, because the table is. The fields are atomics and
        // the load is relaxed, so that mixing sizes tears nothing. Relaxed is enough: each field says all
        // that there is to it, so nothing else has to be seen with the word.
        unsafe { (*pair).load(Ordering::Relaxed) }
    }

    /// The area's virtual clock.
    #[inline(always)]
    pub fn virtual_clock(&self) -> &'a AtomicU64 {
        self.word(layout::HEADER_VIRTUAL_CLOCK)
    }

    /// Word number `nth` of the row at `place`, which is masked to the data. A row can run over into the
    /// slack.
    #[inline(always)]
    pub fn row_word(&self, place: u64, nth: usize) -> &'a AtomicU64 {
        debug_assert!(nth < 4);
        let place = place as usize & (self.shape.data_bytes() - 1) & !7;
        self.word(self.shape.data_offset() + place + (nth & 3) * 8)
    }

    /// The words in the data from `place` on: `count`, or fewer if the data ends before.
    #[inline]
    pub fn row_words(&self, place: u64, count: usize) -> &'a [AtomicU64] {
        let place = place as usize & (self.shape.data_bytes() - 1) & !7;
        let count = count.min((self.shape.data_bytes() - place) / 8);
        // SAFETY: `place` is masked and `count` is limited to the data, which lies inside the area (invariant
        // of `Area`). The words are aligned and atomic. The pointer comes from `base`, because one from a
        // reference to the first word would be valid for that word alone.
        unsafe {
            let first = self.base.byte_add(self.shape.data_offset() + place).cast::<AtomicU64>();
            core::slice::from_raw_parts(first.as_ptr(), count)
        }
    }

    #[inline(always)]
    fn word(&self, offset: usize) -> &'a AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= self.shape.area_bytes());
        // SAFETY: every caller passes a header constant, or a masked data offset plus at most 24 bytes, which
        // the slack covers. So the word is inside the area (invariant of `Area`) and aligned to 8.
        unsafe { self.base.byte_add(offset).cast::<AtomicU64>().as_ref() }
    }
}

// The other side can write every byte under a shared reference to an area at any moment, so every field must
// be atomic. The patterns name all fields, so that a new one does not compile until it is checked here, too.
const _: () = {
    const fn are_atomic<A: Atomic, B: Atomic, C: Atomic, D: Atomic, E: Atomic>(_: (&A, &B, &C, &D, &E)) {}
    const fn check(register: &Register, pair: &Pair) {
        let Register { index, control, lost, busy, _reserved } = register;
        are_atomic((index, control, lost, busy, _reserved));
        let Pair { selector, flags, threshold, count, _reserved } = pair;
        are_atomic((selector, flags, threshold, count, _reserved));
    }
    let _ = check;
    // There is no padding between the fields either.
    assert!(size_of::<Register>() == 3 * size_of::<AtomicU64>() + 10 * size_of::<AtomicU32>());
    assert!(size_of::<Pair>() == 2 * size_of::<AtomicU16>() + 3 * size_of::<AtomicU32>());
};

/// Words that the other side can write at any moment.
trait Atomic {}
impl Atomic for AtomicU16 {}
impl Atomic for AtomicU32 {}
impl Atomic for AtomicU64 {}
impl<T: Atomic, const N: usize> Atomic for [T; N] {}

const _: () = {
    assert!(size_of::<Register>() == layout::REGISTER_BYTES);
    assert!(core::mem::offset_of!(Register, index) == layout::REGISTER_INDEX);
    assert!(core::mem::offset_of!(Register, control) == layout::REGISTER_CONTROL);
    assert!(core::mem::offset_of!(Register, lost) == layout::REGISTER_LOST);
    assert!(core::mem::offset_of!(Register, busy) == layout::REGISTER_BUSY);
    assert!(size_of::<Pair>() == layout::PAIR_BYTES);
    assert!(core::mem::offset_of!(Pair, selector) == layout::PAIR_SELECTOR);
    assert!(core::mem::offset_of!(Pair, flags) == layout::PAIR_FLAGS);
    assert!(core::mem::offset_of!(Pair, threshold) == layout::PAIR_THRESHOLD);
    assert!(core::mem::offset_of!(Pair, count) == layout::PAIR_COUNT);
};
