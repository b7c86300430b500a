//! How ordinary threads and the manager tell each other something, without the manager ever waiting: a thread
//! that is kept off the processor while it holds a lock, or is in the midst of a channel of the standard
//! library, would never have it again if the manager waited for that in real time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// What was told and not heard yet. Both sides have it.
#[derive(Debug)]
pub(crate) struct Mailbox<T>(Arc<Mutex<VecDeque<T>>>);

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Mailbox<T> {
        Mailbox(Arc::clone(&self.0))
    }
}

impl<T> Mailbox<T> {
    /// An empty one, which grows beyond this number only by [`Mailbox::put`].
    pub fn with_room(most: usize) -> Mailbox<T> {
        Mailbox(Arc::new(Mutex::new(VecDeque::with_capacity(most))))
    }

    /// Puts something behind all else. It waits for others, so it is not for the manager.
    pub fn put(&self, told: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(told);
    }

    /// Takes what was put first. It waits for others, so it is not for the manager.
    pub fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The same for the manager: nothing also if another thread uses it just now. That thread then rings the
    /// manager's bell.
    pub fn try_take(&self) -> Option<T> {
        self.0.try_lock().ok()?.pop_front()
    }

    /// Puts something behind all else, for the manager. False if there is no room, or another thread uses it
    /// just now.
    pub fn try_put(&self, told: T) -> bool {
        let Ok(mut all) = self.0.try_lock() else { return false };
        let has_room = all.len() < all.capacity();
        if has_room {
            all.push_back(told);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_never_waits_and_finds_later_what_another_thread_was_about_to_tell() {
        let mailbox = Mailbox::with_room(4);
        mailbox.put(1);
        let held = mailbox.0.lock().unwrap();
        assert_eq!((mailbox.try_take(), mailbox.try_put(2)), (None, false));
        drop(held);
        assert_eq!((mailbox.try_put(2), mailbox.try_take(), mailbox.take()), (true, Some(1), Some(2)));
        assert_eq!(mailbox.take(), None);
    }

    #[test]
    fn the_manager_puts_no_more_than_there_is_room_for() {
        let mailbox = Mailbox::with_room(4);
        let room = (0..1000).take_while(|told| mailbox.try_put(*told)).count();
        assert!((4..1000).contains(&room), "{room}");
    }
}
