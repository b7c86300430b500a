//! Locks between tasks: first come, first served.

use std::collections::VecDeque;

use super::task::Who;

#[derive(Default)]
struct Lock {
    holder: Option<Who>,
    waiting: VecDeque<Who>,
}

/// Locks by number: those between single tasks, or those inside one guest.
#[derive(Default)]
pub(super) struct Locks(Vec<Lock>);

impl Locks {
    pub(super) fn new(locks: usize) -> Locks {
        Locks((0..locks).map(|_| Lock::default()).collect())
    }

    /// Whether `who` has the lock now; if not, it is in the queue. A task that holds it already goes on.
    pub(super) fn take(&mut self, lock: usize, who: Who) -> bool {
        if self.0.len() <= lock {
            self.0.resize_with(lock + 1, Lock::default);
        }
        let lock = &mut self.0[lock];
        match lock.holder {
            Some(holder) if holder != who => {
                lock.waiting.push_back(who);
                false
            }
            _ => {
                lock.holder = Some(who);
                true
            }
        }
    }

    /// Hands the lock on; the answer is who holds it now. Nothing happens if `who` does not hold it.
    pub(super) fn hand_on(&mut self, lock: usize, who: Who) -> Option<Who> {
        let lock = self.0.get_mut(lock)?;
        if lock.holder != Some(who) {
            return None;
        }
        lock.holder = lock.waiting.pop_front();
        lock.holder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Who = Who { client: 0, task: 0 };
    const B: Who = Who { client: 1, task: 0 };
    const C: Who = Who { client: 1, task: 1 };

    #[test]
    fn a_lock_is_handed_on_in_turn_and_by_its_holder_alone() {
        let mut locks = Locks::default();
        assert!(locks.take(0, A) && locks.take(0, A));
        assert!(!locks.take(0, B) && !locks.take(0, C));
        assert_eq!(locks.hand_on(0, C), None, "another holds it");
        assert_eq!([locks.hand_on(0, A), locks.hand_on(0, B), locks.hand_on(0, C)], [Some(B), Some(C), None]);
        assert!(locks.take(0, B));
    }
}
