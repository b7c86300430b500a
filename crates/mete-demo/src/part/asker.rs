//! The asker: sends a request to a server in a crowd some times each second, and counts how long the answer
//! takes.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::client::connect;
use super::crowd::MESSAGE_BYTES;
use crate::board::Counts;

/// The time between an answer and the next request: the server sleeps meanwhile.
const PAUSE: Duration = Duration::from_millis(5);

/// Asks until the process is ended or the server goes away.
pub fn ask(socket: &PathBuf, counts: &Counts) -> io::Result<()> {
    let mut server = connect(socket)?;
    let mut message = [0; MESSAGE_BYTES];
    loop {
        sleep(PAUSE);
        let begun = Instant::now();
        let answered = server.write_all(&message).and_then(|()| server.read_exact(&mut message));
        if answered.is_err() {
            // The server went away: this act is over.
            return Ok(());
        }
        counts.took(begun.elapsed().as_nanos() as u64);
        counts.count(false);
    }
}
