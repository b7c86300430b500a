//! The manager tells of births, and another thread hears of them: of threads that clients have started.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::bell::Bell;
use crate::mailbox::Mailbox;
use crate::memory::Birth;

/// How many births may wait. What is beyond it is found at the next look at all threads.
const MOST_WAITING: usize = 256;

/// The births that were told of and not heard of yet. All copies are the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Births {
    told: Mailbox<Birth>,
    bell: Bell,
}

impl Births {
    /// None yet.
    ///
    /// # Errors
    ///
    /// The system's answer.
    pub fn new() -> io::Result<Births> {
        Ok(Births { told: Mailbox::with_room(MOST_WAITING), bell: Bell::new()? })
    }

    /// Tells of a birth, without waiting. False if it cannot be told now: the thread is found later.
    pub fn tell(&self, birth: Birth) -> bool {
        let is_told = self.told.try_put(birth);
        if is_told {
            self.bell.ring();
        }
        is_told
    }

    /// The next one that was told of.
    pub fn hear(&self) -> Option<Birth> {
        self.told.take()
    }

    /// Waits until one is told of, for this long at most.
    pub fn wait(&self, longest: Duration) {
        let mut bell = [PollFd::new(&self.bell, PollFlags::IN)];
        // An error costs a look for nothing.
        let _ = poll(&mut bell, Timespec::try_from(longest).ok().as_ref());
        self.bell.silence();
    }
}
