//! How long is waited for a program whose files are read or set. The kernel would let a reader wait for ever
//! while the program is stopped.

use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

/// The longest.
const LIMIT: Duration = Duration::from_secs(3);

/// What is done to files that another program answers for; `None` if it does not in time. The thread that
/// waits on then ends with this process.
pub(crate) fn within_limit<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, hear) = sync_channel(1);
    thread::spawn(move || tell.send(ask()));
    hear.recv_timeout(LIMIT).ok()
}
