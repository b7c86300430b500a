//! Locks between tasks. A task that waits for a lock either sleeps and gets the lock in turn, or it spins;
//! then the first task that runs and finds the lock free has it.

use std::collections::VecDeque;

use mete_policy::ClientId;

use super::read::TaskId;

#[derive(Default)]
struct Lock {
    holder: Option<TaskId>,
    waiting: VecDeque<TaskId>,
    /// The clients on which tasks spin, in the order in which they began.
    spinning: Vec<ClientId>,
}

/// Locks by number: those between single tasks, or those inside one guest.
#[derive(Default)]
pub(super) struct Locks(Vec<Lock>);

impl Locks {
    pub(super) fn new(locks: usize) -> Locks {
        Locks((0..locks).map(|_| Lock::default()).collect())
    }

    /// Whether `who` has the lock now; if not, it is in the queue. A task that already holds the lock goes
    /// on.
    pub(super) fn take(&mut self, lock: usize, who: TaskId) -> bool {
        let lock = self.lock(lock);
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

    /// Whether `who` has the lock now; if not, it spins on this client.
    pub(super) fn try_take(&mut self, lock: usize, who: TaskId, on: ClientId) -> bool {
        let lock = self.lock(lock);
        let is_free = lock.holder.is_none_or(|holder| holder == who);
        if is_free {
            lock.holder = Some(who);
            // It spins no longer, so a release need not tell its client.
            lock.spinning.retain(|&client| client != on);
        } else if !lock.spinning.contains(&on) {
            lock.spinning.push(on);
        }
        is_free
    }

    /// Frees the lock for the first task that finds it free. The answer is where others spin, in the order in
    /// which they began.
    pub(super) fn release(&mut self, lock: usize, who: TaskId) -> &[ClientId] {
        let lock = self.lock(lock);
        if lock.holder == Some(who) {
            lock.holder = None;
        }
        &lock.spinning
    }

    fn lock(&mut self, lock: usize) -> &mut Lock {
        if self.0.len() <= lock {
            // A guest's locks exist from their first use on.
            self.0.resize_with(lock + 1, Lock::default);
        }
        &mut self.0[lock]
    }

    /// Hands the lock on. The answer is the task that holds it now. Nothing happens if `who` does not hold
    /// it.
    pub(super) fn hand_on(&mut self, lock: usize, who: TaskId) -> Option<TaskId> {
        let lock = self.0.get_mut(lock)?;
        // Checked by task, so that a program that unlocks too often takes no lock from another.
        if lock.holder != Some(who) {
            return None;
        }
        // The next task in the queue holds it at once, so that no other task can take it in between.
        lock.holder = lock.waiting.pop_front();
        lock.holder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId { client: ClientId::new(0), task: 0 };
    const B: TaskId = TaskId { client: ClientId::new(1), task: 0 };
    const C: TaskId = TaskId { client: ClientId::new(1), task: 1 };

    #[test]
    fn a_lock_is_handed_on_in_turn_and_by_its_holder_alone() {
        let mut locks = Locks::default();
        assert!(locks.take(0, A) && locks.take(0, A));
        assert!(!locks.take(0, B) && !locks.take(0, C));
        assert_eq!(locks.hand_on(0, C), None, "another holds it");
        assert_eq!([locks.hand_on(0, A), locks.hand_on(0, B), locks.hand_on(0, C)], [Some(B), Some(C), None]);
        assert!(locks.take(0, B));
    }

    #[test]
    fn a_spin_lock_goes_to_the_first_task_that_tries_when_it_is_free() {
        let mut locks = Locks::default();
        assert!(
            locks.try_take(0, A, ClientId::new(0))
                && !locks.try_take(0, B, ClientId::new(1))
                && !locks.try_take(0, C, ClientId::new(2))
        );
        assert!(!locks.try_take(0, B, ClientId::new(1)), "it may try as often as it likes");
        assert_eq!(locks.release(0, A), [1, 2].map(ClientId::new));
        assert!(
            locks.try_take(0, C, ClientId::new(2)) && !locks.try_take(0, B, ClientId::new(1)),
            "the later one was there"
        );
        assert_eq!(locks.release(0, C), [ClientId::new(1)]);
    }
}
