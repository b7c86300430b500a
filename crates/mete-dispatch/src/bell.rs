//! One thread wakes another one that waits, and never waits itself.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// See the [module](self). All copies are one bell.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<OwnedFd>);

impl Bell {
    /// One that has not been rung.
    ///
    /// # Errors
    ///
    /// The system's answer.
    pub fn new() -> io::Result<Bell> {
        Ok(Bell(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    pub fn ring(&self) {
        // An error means that it was rung already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Forgets that it was rung.
    pub fn silence(&self) {
        // An error means that it was not.
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

/// It can be read from as long as it rings.
impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
