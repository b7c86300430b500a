//! A thread that works until its guard is dropped.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A thread that works as long as this lives.
pub(crate) struct Background {
    is_done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts the thread. `work` returns when its argument is true.
    pub fn start(name: &str, work: impl FnOnce(&AtomicBool) + Send + 'static) -> io::Result<Background> {
        let is_done = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_done);
        let thread = thread::Builder::new().name(name.into()).spawn(move || work(&stop))?;
        Ok(Background { is_done, thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Relaxed: the thread reads nothing else that was written before this.
        self.is_done.store(true, Ordering::Relaxed);
        // Err means that the thread panicked; then there is nothing left to stop.
        drop(self.thread.take().map(JoinHandle::join));
    }
}
