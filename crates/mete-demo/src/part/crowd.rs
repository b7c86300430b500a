//! A crowd: threads that compute on one processor, and among them, if it is asked for, one that answers
//! requests.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

use mete_measure::processor::pin_bare;

use super::work::{Buffer, compute};

/// Bytes of a request and of its answer.
pub const MESSAGE_BYTES: usize = 64;
/// What the server goes over for an answer: some ten microseconds of work.
const ANSWER_WORK: usize = 16 * 1024;

/// Computes in this number of threads, and answers on a socket, until the process is ended.
pub fn gather(threads: usize, processor: usize, socket: Option<&Path>) -> io::Result<()> {
    pin_bare(processor)?;
    // Threads inherit the processor.
    for _ in 0..threads {
        thread::Builder::new().spawn(|| compute())?;
    }
    match socket {
        Some(socket) => answer(&UnixListener::bind(socket)?),
        None => loop {
            thread::park();
        },
    }
}

/// Answers one asker after the other.
fn answer(listener: &UnixListener) -> io::Result<()> {
    let mut data = Buffer::new(ANSWER_WORK);
    loop {
        let (asker, _) = listener.accept()?;
        // An error means that the asker has ended.
        let _ = serve(asker, &mut data);
    }
}

fn serve(mut asker: UnixStream, data: &mut Buffer) -> io::Result<()> {
    let mut message = [0; MESSAGE_BYTES];
    loop {
        asker.read_exact(&mut message)?;
        data.touch();
        asker.write_all(&message)?;
    }
}
