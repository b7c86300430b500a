//! What the handler keeps for each thread, in private memory that the listener can write, too.
//!
//! A thread takes a slot at its first event and gives it back at its end. Slots are never unmapped, so any
//! thread can read any of them at any time. The logging path loads the slot's address from thread-local
//! storage, and everything else from the slot's one cache line.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::OnceLock;

use mete_log::DomainId;

use crate::precedence::{self, UNSET};
#[cfg(target_arch = "x86_64")]
use crate::sequences;

/// The number of slots in one piece: together with the link to the next piece they fill a page.
const SLOTS: usize = 63;

/// One thread's slot, a cache line, so that threads do not disturb each other.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct ThreadSlot {
    /// The thread's rseq structure. Null if it is not registered, or if the slot belongs to no thread yet.
    #[cfg(target_arch = "x86_64")]
    abi: AtomicPtr<mete_log::rseq::Abi>,
    /// The domain that events are charged to, and the inputs that it comes from; see [`precedence`].
    pub domain: AtomicU32,
    pub bound: AtomicU32,
    pub own: AtomicU32,
    /// The slot's owner. It is [`FREE`], or kept for the thread of this number, with a binding for it, or
    /// [`USED`] by that thread. It is one word, so that a kept slot is either freed or used.
    owner: AtomicU32,
    /// The number of portable handlers that the thread is in, one within the other.
    inside: AtomicU32,
}

/// The owner of a free slot: no thread has this number.
const FREE: u32 = 0;
/// Added to a thread's number (the kernel's have 22 bits): that thread has begun to use its slot.
const USED: u32 = 1 << 31;

/// Slots, and a link to the next piece.
#[repr(C)]
struct SlotPiece {
    slots: [ThreadSlot; SLOTS],
    next: AtomicPtr<SlotPiece>,
}

const _: () = assert!(size_of::<SlotPiece>() == mete_log::layout::PAGE);

static FIRST: SlotPiece = SlotPiece::new();
/// The slot of a thread before its first event, and of a thread for which there was no memory for a slot.
static NO_SLOT: ThreadSlot = ThreadSlot::new();

/// The calling thread's slot; before its first event [`NO_SLOT`].
#[inline(always)]
pub(crate) fn present() -> &'static ThreadSlot {
    pointer::get()
}

/// The thread-local pointer to the slot.
#[cfg(target_arch = "x86_64")]
mod pointer {
    use super::{NO_SLOT, ThreadSlot};
    use core::arch::{asm, global_asm};

    // Written by hand, because to the compiler `thread_local!` is a call. The handler's three arguments then
    // survive it in registers that have to be saved first, which costs 0.14 ns of a row's 3 ns. This is the
    // initial-exec model: it takes eight bytes of the room that the C library keeps for libraries that are
    // loaded later.
    global_asm!(
        ".pushsection .tdata, \"awT\", @progbits",
        ".balign 8",
        ".hidden mete_slot",
        ".globl mete_slot",
        ".type mete_slot, @object",
        ".size mete_slot, 8",
        "mete_slot: .quad {no_slot}",
        ".popsection",
        no_slot = sym NO_SLOT,
    );

    #[inline(always)]
    pub fn get() -> &'static ThreadSlot {
        let slot: *const ThreadSlot;
        // SAFETY: this is the thread's own variable, which always has a reference to a slot.
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

    pub fn set(slot: &'static ThreadSlot) {
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
    use super::{NO_SLOT, ThreadSlot};
    use std::cell::Cell;

    thread_local! {
        // Constant and without a destructor, so that reading it is one load relative to the thread pointer. A
        // pthread key gives the slot back.
        static MINE: Cell<&'static ThreadSlot> = const { Cell::new(&NO_SLOT) };
    }

    pub fn get() -> &'static ThreadSlot {
        MINE.get()
    }

    pub fn set(slot: &'static ThreadSlot) {
        MINE.set(slot);
    }
}

/// The calling thread's slot. It is taken now if the thread has none yet.
pub(crate) fn mine() -> &'static ThreadSlot {
    let slot = present();
    if ptr::eq(slot, &NO_SLOT) { register() } else { slot }
}

/// All slots, whichever thread has them.
pub(crate) fn all() -> impl Iterator<Item = &'static ThreadSlot> {
    core::iter::successors(Some(&FIRST), |piece| piece.next()).flat_map(|piece| &piece.slots)
}

/// The slot of a thread of this process. If the thread has none yet, one is kept for it.
pub(crate) fn of_thread(tid: u32) -> Option<&'static ThreadSlot> {
    // Acquire: pairs with the exchange that gave the thread the slot, which its last owner had reset.
    all().find(|slot| slot.owner.load(Ordering::Acquire) & !USED == tid).or_else(|| take_free(tid))
}

/// Frees the slots that were only kept for a thread. No thread is bound any more.
pub(crate) fn free_unused() {
    all().for_each(ThreadSlot::free_if_kept);
}

/// Waits until no thread is in a portable handler, but only for a short time. False if one still is.
pub(crate) fn wait_for_writers() -> bool {
    let mut tries = (0..100).inspect(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
    no_writer_is_inside() || tries.any(|_| no_writer_is_inside())
}

fn no_writer_is_inside() -> bool {
    // SeqCst: see `ThreadSlot::as_writer`.
    all().all(|slot| slot.inside.load(Ordering::SeqCst) == 0)
}

/// Repairs the slots in the child of a fork: only the calling thread is left, with a new number.
pub(crate) fn after_fork() {
    let mine = present();
    for slot in all().filter(|slot| !ptr::eq(*slot, mine)) {
        // Relaxed, here and below: there is no other thread yet.
        slot.inside.store(0, Ordering::Relaxed);
        slot.give_back();
    }
    if !ptr::eq(mine, &NO_SLOT) {
        mine.owner.store(own_tid() | USED, Ordering::Relaxed);
    }
}

impl ThreadSlot {
    const fn new() -> ThreadSlot {
        ThreadSlot {
            #[cfg(target_arch = "x86_64")]
            abi: AtomicPtr::new(ptr::null_mut()),
            domain: AtomicU32::new(0),
            bound: AtomicU32::new(UNSET),
            own: AtomicU32::new(UNSET),
            owner: AtomicU32::new(FREE),
            inside: AtomicU32::new(0),
        }
    }

    /// The thread's rseq structure, if it can use restartable sequences.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn abi(&self) -> Option<NonNull<mete_log::rseq::Abi>> {
        // Relaxed: the thread itself has stored it.
        NonNull::new(self.abi.load(Ordering::Relaxed))
    }

    /// The domain that the thread's events are charged to.
    #[inline(always)]
    pub fn domain(&self) -> DomainId {
        // Relaxed: a thread that sees a new binding late charges some more rows to the old domain.
        DomainId::new(self.domain.load(Ordering::Relaxed) as u16)
    }

    /// Sets the thread's domain to what its inputs say.
    pub fn settle(&self) {
        precedence::settle(&self.domain, &self.bound, &self.own);
    }

    /// Runs a portable handler, for whose end `memory` waits when a scheduler leaves.
    pub fn as_writer<T>(&self, run: impl FnOnce() -> T) -> T {
        // SeqCst: either the listener, which detaches the memory, sees this count, or the handler sees the
        // memory that comes after.
        self.inside.fetch_add(1, Ordering::SeqCst);
        let result = run();
        // Release: the handler's stores come before the listener sees the count go down.
        self.inside.fetch_sub(1, Ordering::Release);
        result
    }

    /// Passes the slot from one owner to another, if it still has the first one.
    fn pass(&self, from: u32, to: u32) -> bool {
        // Acquire: the new owner sees the slot as the last one reset it. Release: the thread that finds
        // the slot sees what was stored in it before. Relaxed on failure: nothing of the slot is read then.
        self.owner.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether the calling thread has the slot from now on. Either the slot was kept for it and is not freed
    /// meanwhile, or a signal handler that interrupted the thread in here has claimed it first.
    fn claim(&self, tid: u32) -> bool {
        // Relaxed: either this thread has stored it, or the exchange acquires.
        let owner = self.owner.load(Ordering::Relaxed);
        owner == tid | USED || owner == tid && self.pass(tid, tid | USED)
    }

    /// Frees a slot that is only kept for a thread. Only bindings were ever stored in it, and they are taken
    /// back already, so it is as it was before.
    fn free_if_kept(&self) {
        // Relaxed: the exchange decides.
        let owner = self.owner.load(Ordering::Relaxed);
        if owner != FREE && owner & USED == 0 {
            self.pass(owner, FREE);
        }
    }

    /// Resets the slot and frees it.
    fn give_back(&self) {
        // Relaxed: the last store releases it to the next owner.
        #[cfg(target_arch = "x86_64")]
        self.abi.store(ptr::null_mut(), Ordering::Relaxed);
        // SeqCst, as all stores of a domain's inputs: see `precedence`.
        self.bound.store(UNSET, Ordering::SeqCst);
        self.own.store(UNSET, Ordering::SeqCst);
        // Release: the next owner finds the slot reset.
        self.owner.store(FREE, Ordering::Release);
    }
}

impl SlotPiece {
    const fn new() -> SlotPiece {
        SlotPiece { slots: [const { ThreadSlot::new() }; SLOTS], next: AtomicPtr::new(ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static SlotPiece> {
        // SAFETY: a linked piece is complete and never unmapped. Acquire: pairs with the release in `grow`.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }
}

/// Takes a free slot for an owner, a new one if there is none.
fn take_free(owner: u32) -> Option<&'static ThreadSlot> {
    let mut piece = &FIRST;
    loop {
        if let Some(slot) = piece.slots.iter().find(|slot| slot.pass(FREE, owner)) {
            slot.settle();
            return Some(slot);
        }
        piece = piece.next().or_else(|| grow(piece))?;
    }
}

/// Maps another piece and links it behind the last one. By mmap, because a thread's first event can happen
/// inside the allocator.
fn grow(last: &'static SlotPiece) -> Option<&'static SlotPiece> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping.
    let memory = unsafe {
        mmap_anonymous(ptr::null_mut(), size_of::<SlotPiece>(), protection, MapFlags::PRIVATE).ok()?
    };
    let fresh = NonNull::new(memory.cast::<SlotPiece>())?;
    // SAFETY: the memory was just mapped writable; it is page-aligned and large enough.
    unsafe { fresh.write(SlotPiece::new()) };
    // Release: a thread that follows the link finds the slots initialised. Acquire: if another thread was
    // first, this one follows that thread's link.
    let link =
        last.next.compare_exchange(ptr::null_mut(), fresh.as_ptr(), Ordering::AcqRel, Ordering::Acquire);
    if link.is_err() {
        // SAFETY: the piece was mapped above and is linked nowhere, because another thread was first.
        let _ = unsafe { munmap(memory, size_of::<SlotPiece>()) };
    }
    last.next()
}

/// Takes a slot at the calling thread's first event.
#[cold]
fn register() -> &'static ThreadSlot {
    let tid = own_tid();
    // A slot that the scheduler's binding is kept in comes first.
    let claimed = all().find(|slot| slot.claim(tid)).or_else(|| take_free(tid | USED));
    let Some(slot) = claimed else { return &NO_SLOT };
    // Relaxed: only this thread reads it.
    #[cfg(target_arch = "x86_64")]
    slot.abi.store(sequences::abi().unwrap_or(ptr::null_mut()), Ordering::Relaxed);
    pointer::set(slot);
    if let Some(&Some(key)) = EXIT_KEY.get() {
        // SAFETY: `prepare` made the key; its destructor takes a slot.
        unsafe { libc::pthread_setspecific(key, ptr::from_ref(slot).cast()) };
    }
    slot
}

/// The pthread key by which a thread's end is noticed. `None` if there were no keys left.
static EXIT_KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

/// Looks up and makes early what a thread's first event needs. That event can happen in a signal handler or
/// inside the C library, where the thread must not wait for anything. From now on the ends of threads call
/// this library, so it must stay loaded.
pub(crate) fn prepare() {
    #[cfg(target_arch = "x86_64")]
    sequences::are_in_use();
    EXIT_KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the call writes `key`; `leave` has the right signature.
        (unsafe { libc::pthread_key_create(&mut key, Some(leave)) } == 0).then_some(key)
    });
}

/// Gives the slot back at a thread's end. Another destructor can still log; the thread then takes a slot once
/// more.
unsafe extern "C" fn leave(slot: *mut libc::c_void) {
    // SAFETY: this is what `register` stored: a slot, which lives for ever.
    let slot = unsafe { &*slot.cast::<ThreadSlot>() };
    // So that a signal handler that logs from here on takes another slot. Relaxed: it runs in this thread.
    slot.owner.store(USED, Ordering::Relaxed);
    pointer::set(&NO_SLOT);
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
                // All at once, so that no slot is free again before the last thread has its own.
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
    fn log_11_a_first_event_needs_nothing_that_another_thread_may_be_making() {
        // The key was made when the library was loaded, before any test.
        assert!(EXIT_KEY.get().is_some_and(|key| key.is_some()));
    }

    #[test]
    fn log_6_a_thread_that_ends_gives_its_slot_back_as_it_was() {
        let _alone = ONE_AT_A_TIME.lock();
        let in_use = || all().filter(|slot| slot.owner.load(Ordering::Relaxed) != FREE).count();
        let before = in_use();
        for _ in 0..300 {
            let thread = std::thread::spawn(|| {
                assert_eq!(mine().domain(), DomainId::default(), "nothing is left of the last owner");
                crate::set_domain(DomainId::new(7));
                assert_eq!(mine().domain(), DomainId::new(7));
            });
            thread.join().unwrap();
        }
        // Fewer, if the thread of an earlier test ended only now.
        assert!(in_use() <= before);
    }

    #[test]
    fn log_6_a_slot_kept_for_a_thread_is_freed_or_used_but_not_both() {
        const UNUSED_TID: u32 = USED - 1;
        let _alone = ONE_AT_A_TIME.lock();
        let kept = of_thread(UNUSED_TID).unwrap();
        free_unused();
        assert!(!kept.claim(UNUSED_TID), "freed, and not to be used");
        let kept = of_thread(UNUSED_TID).unwrap();
        assert!(kept.claim(UNUSED_TID), "used, and not to be freed");
        free_unused();
        assert!(ptr::eq(of_thread(UNUSED_TID).unwrap(), kept));
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
    fn log_6_if_scheduler_and_program_bind_a_thread_at_once_the_scheduler_wins() {
        let _alone = ONE_AT_A_TIME.lock();
        let (slot, own) = (mine(), DomainId::new(5));
        for round in 0..2000_u32 {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    slot.bound.store(1000 + round, Ordering::SeqCst);
                    slot.settle();
                });
                crate::set_domain(own);
            });
            assert_eq!(u32::from(slot.domain().get()), 1000 + round);
            slot.bound.store(UNSET, Ordering::SeqCst);
        }
        slot.settle();
        assert_eq!(slot.domain(), own);
    }
}
