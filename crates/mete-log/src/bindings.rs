//! The bindings that a scheduler publishes to a component: which process belongs to which domain (thesis
//! §4.4.2: the monitor publishes the mappings in a shared region). A driver looks up here which domain to
//! name as the correspondent.
//!
//! The table is an open-addressed hash table of 64-bit words. A word has the pid in its high half and the
//! domain plus one in its low half; it is zero in an empty slot. One word is one binding, so a binding is
//! read and written as a whole.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::DomainId;

/// The number of slots of the table, a power of two.
pub const SLOTS: usize = 4096;
/// Bytes of the table.
pub const BYTES: usize = SLOTS * size_of::<AtomicU64>();
/// How many slots away from its place a binding can be. This bounds the time of a look-up, whatever the table
/// holds.
const REACH: usize = 64;

/// No slot near the binding's place is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "process {pid} cannot be published to the component: the table of {SLOTS} bindings is too full near its place"
)]
pub struct BindingsFull {
    /// The process.
    pub pid: u32,
}

/// A view of the table; see the [module](self).
#[derive(Clone, Copy)]
pub struct Bindings<'a> {
    slots: &'a [AtomicU64],
}

impl<'a> Bindings<'a> {
    /// A view of the table in `slots`, whose length is [`SLOTS`].
    pub fn new(slots: &'a [AtomicU64]) -> Bindings<'a> {
        debug_assert_eq!(slots.len(), SLOTS);
        Bindings { slots }
    }

    /// Binds a process, or changes its binding. One writer at a time: the scheduler.
    ///
    /// # Errors
    ///
    /// [`BindingsFull`]; nothing has changed then.
    pub fn bind(&self, pid: u32, domain: DomainId) -> Result<(), BindingsFull> {
        let word = u64::from(pid) << 32 | (u64::from(domain.get()) + 1);
        let mut places = self.places(pid);
        let held = places.clone().find(|slot| holds(slot, pid));
        // Relaxed, here and below: the one word is the whole binding, so nothing else has to be seen with it.
        let slot = held.or_else(|| places.find(|slot| slot.load(Ordering::Relaxed) == 0));
        slot.ok_or(BindingsFull { pid })?.store(word, Ordering::Relaxed);
        Ok(())
    }

    /// Forgets a process.
    pub fn unbind(&self, pid: u32) {
        // A slot that is emptied hides nothing: look-ups do not stop at an empty one.
        for slot in self.places(pid).filter(|slot| holds(slot, pid)) {
            slot.store(0, Ordering::Relaxed);
        }
    }

    /// The domain of a process, if the scheduler has published one. Looks at 64 slots at most.
    pub fn domain_of(&self, pid: u32) -> Option<DomainId> {
        let word = self.places(pid).find(|slot| holds(slot, pid))?.load(Ordering::Relaxed);
        DomainId::try_from((word as u32).checked_sub(1)?).ok()
    }

    fn places(&self, pid: u32) -> impl Iterator<Item = &'a AtomicU64> + Clone + use<'a> {
        let slots = self.slots;
        // Fibonacci hashing, so that neighbouring pids are spread over the table.
        let start = (pid.wrapping_mul(0x9e37_79b1) >> 8) as usize;
        (0..REACH).map(move |step| &slots[(start + step) & (slots.len() - 1)])
    }
}

fn holds(slot: &AtomicU64, pid: u32) -> bool {
    let word = slot.load(Ordering::Relaxed);
    word != 0 && (word >> 32) as u32 == pid
}
