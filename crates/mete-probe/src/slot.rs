//! What the handler keeps for each thread, in private memory that the listener may write, too.
//!
//! A slot is taken at a thread's first event and given back at its end; slots are never unmapped,
//! so anybody may look at any of them at any time. The logging path loads the slot's address from
//! thread-local storage and everything else from the slot's one cache line.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::OnceLock;

use mete_log::DomainId;

use crate::domain;
#[cfg(target_arch = "x86_64")]
use crate::sequences;

/// Slots in one piece: with the link to the next piece, a page.
const SLOTS: usize = 63;

/// One thread's slot, a cache line, so that threads do not disturb each other.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Slot {
    /// The thread's rseq structure, or null: not registered, or nobody's slot yet.
    #[cfg(target_arch = "x86_64")]
    abi: AtomicPtr<mete_log::rseq::Abi>,
    /// What events are charged to, and where that comes from; see [`domain`].
    pub domain: AtomicU32,
    pub bound: AtomicU32,
    pub own: AtomicU32,
    /// Whose slot it is: [`FREE`]; or kept for the thread of that number, with a binding for it; or
    /// [`USED`] by it. In one word, so that a kept slot is either freed or used.
    owner: AtomicU32,
    /// How many locked handlers the thread is in, one within the other.
    inside: AtomicU32,
}

/// No thread has this number.
const FREE: u32 = 0;
/// With a thread's number (the kernel's have 22 bits): that thread has begun to use its slot.
const USED: u32 = 1 << 31;

/// Slots, and the next piece of them.
#[repr(C)]
struct Piece {
    slots: [Slot; SLOTS],
    next: AtomicPtr<Piece>,
}

const _: () = assert!(size_of::<Piece>() == mete_log::layout::PAGE);

static FIRST: Piece = Piece::new();
/// What a thread has before its first event, and for want of memory for a slot.
static NOBODY: Slot = Slot::new();

/// The calling thread's slot, or before its first event a slot that says nothing.
#[inline(always)]
pub(crate) fn present() -> &'static Slot {
    pointer::get()
}

/// The thread-local pointer to the slot.
#[cfg(target_arch = "x86_64")]
mod pointer {
    use super::{NOBODY, Slot};
    use core::arch::{asm, global_asm};

    // By hand, because `thread_local!` is a call as far as the compiler knows: the handler's three
    // arguments then survive it in registers that have to be saved first, 0.14 ns of a row's 3 ns.
    // This is the initial-exec model: of the room that the C library keeps for libraries that are
    // loaded later it takes eight bytes.
    global_asm!(
        ".pushsection .tdata, \"awT\", @progbits",
        ".balign 8",
        ".hidden mete_slot",
        ".globl mete_slot",
        ".type mete_slot, @object",
        ".size mete_slot, 8",
        "mete_slot: .quad {nobody}",
        ".popsection",
        nobody = sym NOBODY,
    );

    #[inline(always)]
    pub fn get() -> &'static Slot {
        let slot: *const Slot;
        // SAFETY: the thread's own variable, which only ever holds references to slots.
        unsafe {
            asm!(
                "mov {slot}, [rip + mete_slot@gottpoff]",
                "mov {slot}, fs:[{slot}]",
                slot = out(reg) slot,
                options(nostack, readonly, preserves_flags),
            );
            &*slot
        }
    }

    pub fn set(slot: &'static Slot) {
        // SAFETY: as in `get`.
        unsafe {
            asm!(
                "mov {place}, [rip + mete_slot@gottpoff]",
                "mov fs:[{place}], {slot}",
                place = out(reg) _,
                slot = in(reg) slot,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// The thread-local pointer to the slot.
#[cfg(not(target_arch = "x86_64"))]
mod pointer {
    use super::{NOBODY, Slot};
    use std::cell::Cell;

    thread_local! {
        // Constant and without a destructor, so that reading it is one load relative to the thread
        // pointer. Giving the slot back is the business of a pthread key.
        static MINE: Cell<&'static Slot> = const { Cell::new(&NOBODY) };
    }

    pub fn get() -> &'static Slot {
        MINE.get()
    }

    pub fn set(slot: &'static Slot) {
        MINE.set(slot);
    }
}

/// The calling thread's slot, taken now if need be.
pub(crate) fn mine() -> &'static Slot {
    let slot = present();
    if ptr::eq(slot, &NOBODY) { register() } else { slot }
}

/// All slots, whoever has them.
pub(crate) fn all() -> impl Iterator<Item = &'static Slot> {
    core::iter::successors(Some(&FIRST), |piece| piece.next()).flat_map(|piece| &piece.slots)
}

/// The slot of a thread of this process; where it has none yet, one is kept for it.
pub(crate) fn of_thread(tid: u32) -> Option<&'static Slot> {
    all().find(|slot| slot.owner.load(Ordering::Acquire) & !USED == tid).or_else(|| take_free(tid))
}

/// Frees the slots that were only kept for a thread. Nothing is bound any more.
pub(crate) fn free_unused() {
    all().for_each(Slot::free_if_kept);
}

/// Waits, a short while at most, until no thread is in a locked handler; false if one still is.
pub(crate) fn wait_for_writers() -> bool {
    let is_quiet = || all().all(|slot| slot.inside.load(Ordering::SeqCst) == 0);
    let mut tries = (0..100).inspect(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
    is_quiet() || tries.any(|_| is_quiet())
}

/// In the child of a fork: only the calling thread is left, with a new number.
pub(crate) fn after_fork() {
    let mine = present();
    for slot in all().filter(|slot| !ptr::eq(*slot, mine)) {
        slot.inside.store(0, Ordering::Relaxed);
        slot.give_back();
    }
    if !ptr::eq(mine, &NOBODY) {
        mine.owner.store(own_tid() | USED, Ordering::Relaxed);
    }
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            #[cfg(target_arch = "x86_64")]
            abi: AtomicPtr::new(ptr::null_mut()),
            domain: AtomicU32::new(0),
            bound: AtomicU32::new(domain::UNSET),
            own: AtomicU32::new(domain::UNSET),
            owner: AtomicU32::new(FREE),
            inside: AtomicU32::new(0),
        }
    }

    /// The thread's rseq structure, if it may use restartable sequences.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn abi(&self) -> Option<NonNull<mete_log::rseq::Abi>> {
        NonNull::new(self.abi.load(Ordering::Relaxed))
    }

    /// What the thread's events are charged to.
    #[inline(always)]
    pub fn domain(&self) -> DomainId {
        self.domain.load(Ordering::Relaxed) as DomainId
    }

    /// Runs a handler that a leaving scheduler has to wait for.
    pub fn as_writer<T>(&self, run: impl FnOnce() -> T) -> T {
        // SeqCst: whoever detaches sees this, or the handler sees the memory that comes after.
        self.inside.fetch_add(1, Ordering::SeqCst);
        let result = run();
        self.inside.fetch_sub(1, Ordering::Release);
        result
    }

    fn pass(&self, from: u32, to: u32) -> bool {
        self.owner.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether the calling thread has it from now on: it was kept for it and is not freed meanwhile,
    /// or a signal handler that interrupted the thread amid this has come first.
    fn claim(&self, tid: u32) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        owner == tid | USED || owner == tid && self.pass(tid, tid | USED)
    }

    /// Only bindings were ever stored in it, and they are taken back already: it is as it was.
    fn free_if_kept(&self) {
        let owner = self.owner.load(Ordering::Relaxed);
        if owner != FREE && owner & USED == 0 {
            self.pass(owner, FREE);
        }
    }

    fn give_back(&self) {
        #[cfg(target_arch = "x86_64")]
        self.abi.store(ptr::null_mut(), Ordering::Relaxed);
        self.bound.store(domain::UNSET, Ordering::SeqCst);
        self.own.store(domain::UNSET, Ordering::SeqCst);
        self.owner.store(FREE, Ordering::Release);
    }
}

impl Piece {
    const fn new() -> Piece {
        Piece { slots: [const { Slot::new() }; SLOTS], next: AtomicPtr::new(ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static Piece> {
        // SAFETY: a piece that is linked is complete (released by `grow`) and never unmapped.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }
}

fn take_free(owner: u32) -> Option<&'static Slot> {
    let mut piece = &FIRST;
    loop {
        if let Some(slot) = piece.slots.iter().find(|slot| slot.pass(FREE, owner)) {
            domain::settle(slot);
            return Some(slot);
        }
        piece = piece.next().or_else(|| grow(piece))?;
    }
}

/// Maps another piece behind the last one. By mmap, because the first event of a thread may happen
/// inside the allocator.
fn grow(last: &'static Piece) -> Option<&'static Piece> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping.
    let memory =
        unsafe { mmap_anonymous(ptr::null_mut(), size_of::<Piece>(), protection, MapFlags::PRIVATE).ok()? };
    let fresh = NonNull::new(memory.cast::<Piece>())?;
    // SAFETY: mapped writable just now, page-aligned, large enough.
    unsafe { fresh.write(Piece::new()) };
    // Release: who follows the link finds the slots initialised.
    let link =
        last.next.compare_exchange(ptr::null_mut(), fresh.as_ptr(), Ordering::AcqRel, Ordering::Acquire);
    if link.is_err() {
        // SAFETY: mapped above and linked nowhere: another thread was first.
        let _ = unsafe { munmap(memory, size_of::<Piece>()) };
    }
    last.next()
}

/// The calling thread's first event.
#[cold]
fn register() -> &'static Slot {
    let tid = own_tid();
    let claimed = all().find(|slot| slot.claim(tid)).or_else(|| take_free(tid | USED));
    let Some(slot) = claimed else { return &NOBODY };
    #[cfg(target_arch = "x86_64")]
    slot.abi.store(sequences::abi().unwrap_or(ptr::null_mut()), Ordering::Relaxed);
    pointer::set(slot);
    if let Some(&Some(key)) = EXIT_KEY.get() {
        // SAFETY: the key was made by `prepare`; its destructor takes a slot.
        unsafe { libc::pthread_setspecific(key, ptr::from_ref(slot).cast()) };
    }
    slot
}

/// By which a thread's end is noticed; none if there were no keys left.
static EXIT_KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

/// Looks up and makes early what a thread's first event needs: that may happen in a signal handler
/// or inside the C library, where nothing can be waited for. Thread ends call this library from now
/// on: it must stay loaded.
pub(crate) fn prepare() {
    #[cfg(target_arch = "x86_64")]
    sequences::are_in_use();
    EXIT_KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is written; `leave` has the right signature.
        (unsafe { libc::pthread_key_create(&mut key, Some(leave)) } == 0).then_some(key)
    });
}

/// A thread ends. Another destructor may still log: it then takes a slot once more.
unsafe extern "C" fn leave(slot: *mut libc::c_void) {
    // SAFETY: what `register` stored: a slot, which lives for ever.
    let slot = unsafe { &*slot.cast::<Slot>() };
    // So that a signal handler that logs from here on takes another one.
    slot.owner.store(USED, Ordering::Relaxed);
    pointer::set(&NOBODY);
    slot.give_back();
}

fn own_tid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;

    use super::*;

    /// The tests below count slots, which all threads of the process share.
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn log_6_each_thread_has_a_slot_of_its_own_however_many_there_are() {
        const THREADS: usize = 200;
        let _alone = ONE_AT_A_TIME.lock();
        let barrier = Barrier::new(THREADS);
        let slots: HashSet<usize> = std::thread::scope(|scope| {
            let slot = || {
                let slot = ptr::from_ref(mine()).addr();
                assert_eq!(ptr::from_ref(mine()).addr(), slot, "the same at each event");
                // All at once, so that none is free again before the last has its own.
                barrier.wait();
                slot
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(slot)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(slots.len(), THREADS);
        assert!(all().count() >= THREADS);
    }

    #[test]
    fn log_11_a_first_event_needs_nothing_that_another_thread_may_be_amid_making() {
        // Made when the library was loaded, before any test.
        assert!(EXIT_KEY.get().is_some_and(|key| key.is_some()));
    }

    #[test]
    fn log_6_a_thread_that_ends_gives_its_slot_back_as_it_was() {
        let _alone = ONE_AT_A_TIME.lock();
        let in_use = || all().filter(|slot| slot.owner.load(Ordering::Relaxed) != FREE).count();
        let before = in_use();
        for _ in 0..300 {
            let thread = std::thread::spawn(|| {
                assert_eq!(mine().domain(), 0, "nothing is left of who had it before");
                crate::set_domain(7);
                assert_eq!(mine().domain(), 7);
            });
            thread.join().unwrap();
        }
        // Fewer where the thread of a test before ended only now.
        assert!(in_use() <= before);
    }

    #[test]
    fn log_6_a_slot_kept_for_a_thread_is_freed_or_used_but_not_both() {
        const NOBODYS_TID: u32 = USED - 1;
        let _alone = ONE_AT_A_TIME.lock();
        let kept = of_thread(NOBODYS_TID).unwrap();
        free_unused();
        assert!(!kept.claim(NOBODYS_TID), "freed, and not to be used");
        let kept = of_thread(NOBODYS_TID).unwrap();
        assert!(kept.claim(NOBODYS_TID), "used, and not to be freed");
        free_unused();
        assert!(ptr::eq(of_thread(NOBODYS_TID).unwrap(), kept));
        kept.give_back();
    }

    #[test]
    fn log_6_no_two_threads_have_one_slot_while_slots_are_kept_and_freed() {
        const ROUNDS: usize = 500;
        let _alone = ONE_AT_A_TIME.lock();
        for _ in 0..ROUNDS {
            let (keep, taken) = (Barrier::new(3), Barrier::new(2));
            let (sender, tids) = std::sync::mpsc::channel();
            let slot = |sender: std::sync::mpsc::Sender<u32>| {
                sender.send(own_tid()).unwrap();
                keep.wait();
                let slot = ptr::from_ref(mine()).addr();
                taken.wait();
                slot
            };
            std::thread::scope(|scope| {
                let slot = &slot;
                let threads = [sender.clone(), sender].map(|sender| scope.spawn(move || slot(sender)));
                tids.iter().take(2).for_each(|tid| _ = of_thread(tid));
                keep.wait();
                free_unused();
                let [one, other] = threads.map(|thread| thread.join().unwrap());
                assert_ne!(one, other);
            });
        }
    }

    #[test]
    fn log_6_binding_from_outside_and_inside_at_once_settles_on_the_outside() {
        let _alone = ONE_AT_A_TIME.lock();
        let slot = mine();
        for round in 0..2000_u32 {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    slot.bound.store(1000 + round, Ordering::SeqCst);
                    domain::settle(slot);
                });
                crate::set_domain(5);
            });
            assert_eq!(u32::from(slot.domain()), 1000 + round);
            slot.bound.store(domain::UNSET, Ordering::SeqCst);
        }
        domain::settle(slot);
        assert_eq!(slot.domain(), 5);
    }
}
