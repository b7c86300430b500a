//! Accounting domains of the threads (LOG-6; thesis §3.5, §4.4.2).
//!
//! A thread's domain comes, first that is set: from the scheduler for this thread, from the program
//! for this thread, from the scheduler for the process, from the program for the process. The
//! result stands in a *slot* in private memory: the logging path loads the slot's address from
//! thread-local storage and the domain from the slot. Binding from outside writes the slot.
//!
//! Slots are taken at a thread's first event, given back at its end, and never unmapped, so the
//! listener may look at any of them at any time.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::cell::Cell;
use std::sync::OnceLock;

use mete_log::DomainId;

/// In a slot's inputs: not set.
const UNSET: u32 = u32::MAX;
/// Slots in one piece: what fits into a page.
const SLOTS: usize = 64;

/// One thread's domain and where it comes from. A cache line, so that threads do not disturb each
/// other.
#[repr(align(64))]
struct Slot {
    domain: AtomicU32,
    tid: AtomicU32,
    bound: AtomicU32,
    own: AtomicU32,
    /// How many handlers the thread is in, one within the other; only the locked ones count.
    inside: AtomicU32,
}

/// Slots, and the next piece of them.
#[repr(C)]
struct Piece {
    slots: [Slot; SLOTS],
    next: AtomicPtr<Piece>,
}

impl Piece {
    const fn new() -> Piece {
        Piece { slots: [const { Slot::new() }; SLOTS], next: AtomicPtr::new(core::ptr::null_mut()) }
    }
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            domain: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            bound: AtomicU32::new(UNSET),
            own: AtomicU32::new(UNSET),
            inside: AtomicU32::new(0),
        }
    }

    fn take(&self, tid: u32) -> bool {
        self.tid.compare_exchange(0, tid, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn give_back(&self) {
        self.bound.store(UNSET, Ordering::SeqCst);
        self.own.store(UNSET, Ordering::SeqCst);
        self.tid.store(0, Ordering::Release);
    }

    /// Brings the domain in line with its inputs. The thread and the listener may do so at once:
    /// whoever stores last sees, by looking again, what the other one changed.
    fn settle(&self) {
        let mut domain = self.wanted();
        loop {
            self.domain.store(domain, Ordering::SeqCst);
            let now = self.wanted();
            if now == domain {
                return;
            }
            domain = now;
        }
    }

    fn wanted(&self) -> u32 {
        let inputs = [&self.bound, &self.own, &PROCESS_BOUND, &PROCESS_OWN];
        inputs
            .into_iter()
            .map(|input| input.load(Ordering::SeqCst))
            .find(|&domain| domain != UNSET)
            .unwrap_or(0)
    }
}

static PROCESS_BOUND: AtomicU32 = AtomicU32::new(UNSET);
static PROCESS_OWN: AtomicU32 = AtomicU32::new(UNSET);
static FIRST: Piece = Piece::new();

thread_local! {
    // Without a destructor and constant, so that the logging path is one load relative to the
    // thread pointer. Giving the slot back is the business of a pthread key.
    static SLOT: Cell<Option<&'static Slot>> = const { Cell::new(None) };
}

/// The calling thread's domain.
#[inline(always)]
pub fn current() -> DomainId {
    let slot = SLOT.get().unwrap_or_else(register);
    slot.domain.load(Ordering::Relaxed) as DomainId
}

/// Runs a handler that a leaving scheduler has to wait for.
pub(crate) fn as_writer<T>(run: impl FnOnce() -> T) -> T {
    let slot = SLOT.get().unwrap_or_else(register);
    // SeqCst: whoever detaches sees this, or the handler sees the memory that comes after.
    slot.inside.fetch_add(1, Ordering::SeqCst);
    let result = run();
    slot.inside.fetch_sub(1, Ordering::Release);
    result
}

/// Waits, a short while at most, until no thread is in such a handler; false if one still is.
pub(crate) fn wait_for_writers() -> bool {
    let is_quiet = || slots().all(|slot| slot.inside.load(Ordering::SeqCst) == 0);
    let mut tries = (0..100).inspect(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
    is_quiet() || tries.any(|_| is_quiet())
}

/// Sets the calling thread's domain, which lasts until the scheduler binds the thread.
pub fn set_domain(domain: DomainId) {
    let slot = SLOT.get().unwrap_or_else(register);
    slot.own.store(u32::from(domain), Ordering::SeqCst);
    slot.settle();
}

/// Sets the domain of the process' threads that have none of their own.
pub fn set_process_domain(domain: DomainId) {
    PROCESS_OWN.store(u32::from(domain), Ordering::SeqCst);
    settle_all();
}

/// The scheduler binds the whole process.
pub(crate) fn bind_process(domain: DomainId) {
    PROCESS_BOUND.store(u32::from(domain), Ordering::SeqCst);
    settle_all();
}

/// The scheduler binds one thread; false if this process has no such thread.
pub(crate) fn bind_thread(tid: u32, domain: DomainId) -> bool {
    if !std::path::Path::new(&format!("/proc/self/task/{tid}")).exists() {
        return false;
    }
    // A thread that has not logged yet finds its binding when it does.
    let Some(slot) = slot_of(tid) else { return false };
    slot.bound.store(u32::from(domain), Ordering::SeqCst);
    slot.settle();
    true
}

/// Forgets what the scheduler bound: it is gone.
pub(crate) fn unbind_all() {
    PROCESS_BOUND.store(UNSET, Ordering::SeqCst);
    for slot in slots() {
        slot.bound.store(UNSET, Ordering::SeqCst);
    }
    settle_all();
}

/// In the child of a fork: only the calling thread is left, with a new number.
pub(crate) fn after_fork() {
    let mine = SLOT.get();
    for slot in slots() {
        if mine.is_some_and(|mine| core::ptr::eq(mine, slot)) {
            slot.tid.store(tid(), Ordering::Relaxed);
        } else {
            slot.inside.store(0, Ordering::Relaxed);
            slot.give_back();
        }
    }
    unbind_all();
}

fn settle_all() {
    slots().for_each(Slot::settle);
}

fn slots() -> impl Iterator<Item = &'static Slot> {
    pieces().flat_map(|piece| &piece.slots)
}

fn pieces() -> impl Iterator<Item = &'static Piece> {
    core::iter::successors(Some(&FIRST), |piece| next_piece(piece))
}

fn next_piece(piece: &Piece) -> Option<&'static Piece> {
    // SAFETY: a piece that is linked is complete (released by `grow`) and never unmapped.
    unsafe { piece.next.load(Ordering::Acquire).as_ref() }
}

/// The slot of a thread; where it has none yet, one is taken for it, to be found by `register`.
fn slot_of(tid: u32) -> Option<&'static Slot> {
    held_by(tid).or_else(|| free_slot(tid))
}

fn held_by(tid: u32) -> Option<&'static Slot> {
    slots().find(|slot| slot.tid.load(Ordering::Acquire) == tid)
}

fn free_slot(tid: u32) -> Option<&'static Slot> {
    let mut piece = &FIRST;
    loop {
        if let Some(slot) = piece.slots.iter().find(|slot| slot.take(tid)) {
            slot.settle();
            return Some(slot);
        }
        piece = next_piece(piece).or_else(|| grow(piece))?;
    }
}

/// Maps another piece behind the last one. By mmap, because the first event of a thread may happen
/// inside the allocator.
fn grow(last: &'static Piece) -> Option<&'static Piece> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping.
    let memory = unsafe {
        mmap_anonymous(core::ptr::null_mut(), size_of::<Piece>(), protection, MapFlags::PRIVATE).ok()?
    };
    let fresh = NonNull::new(memory.cast::<Piece>())?;
    // SAFETY: mapped writable just now, page-aligned, large enough.
    unsafe { fresh.write(Piece::new()) };
    // Release: who follows the link finds the slots initialised.
    let linked = last.next.compare_exchange(
        core::ptr::null_mut(),
        fresh.as_ptr(),
        Ordering::AcqRel,
        Ordering::Acquire,
    );
    if linked.is_err() {
        // SAFETY: mapped above and linked nowhere: another thread was first.
        let _ = unsafe { rustix::mm::munmap(memory, size_of::<Piece>()) };
    }
    next_piece(last)
}

/// The calling thread's first event: takes a slot and sees to its return. Without memory the
/// thread shares a slot that nobody binds.
#[cold]
fn register() -> &'static Slot {
    static NOBODY: Slot = Slot::new();
    let Some(slot) = slot_of(tid()) else { return &NOBODY };
    SLOT.set(Some(slot));
    give_back_at_exit(slot);
    slot
}

fn give_back_at_exit(slot: &'static Slot) {
    if let Some(key) = exit_key() {
        // SAFETY: the key was made by `exit_key`; its destructor takes a slot.
        unsafe { libc::pthread_setspecific(key, core::ptr::from_ref(slot).cast()) };
    }
}

fn exit_key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is written; `leave` has the right signature.
        (unsafe { libc::pthread_key_create(&mut key, Some(leave)) } == 0).then_some(key)
    })
}

/// A thread ends. Another destructor may still log: it then takes a slot once more.
unsafe extern "C" fn leave(slot: *mut libc::c_void) {
    SLOT.set(None);
    // SAFETY: what `give_back_at_exit` stored: a slot, which lives for ever.
    unsafe { &*slot.cast::<Slot>() }.give_back();
}

fn tid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}
