//! The client: sends a request, waits for the answer, does a little work of its own, and begins again.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::driver::{ANSWER_BYTES, REQUEST_BYTES};
use super::work::{Buffer, processor};
use crate::board::Counts;

/// Every tenth request goes to another driver than the favourite.
const STRAY: u64 = 10;

/// Sends requests until the process is ended or a driver goes away.
pub fn ask(sockets: &[PathBuf], counts: &Counts) -> io::Result<()> {
    let mut drivers = sockets.iter().map(connect).collect::<io::Result<Vec<_>>>()?;
    let mut own = Buffer::new(4096);
    let mut answer = vec![0; ANSWER_BYTES];
    for number in 1_u64.. {
        let stray = number.is_multiple_of(STRAY) && drivers.len() > 1;
        // The other drivers take turns.
        let which = if stray { 1 + (number / STRAY) as usize % (drivers.len() - 1) } else { 0 };
        let mut request = [0; REQUEST_BYTES];
        request[..4].copy_from_slice(&processor().to_le_bytes());
        let begun = Instant::now();
        if exchange(&mut drivers[which], &request, &mut answer).is_err() {
            // The driver went away: the demo is over.
            return Ok(());
        }
        counts.took(begun.elapsed().as_nanos() as u64);
        let driver_ran_on = u32::from_le_bytes([answer[0], answer[1], answer[2], answer[3]]);
        counts.count(driver_ran_on != processor());
        own.touch();
    }
    Ok(())
}

fn exchange(driver: &mut UnixStream, request: &[u8], answer: &mut [u8]) -> io::Result<()> {
    driver.write_all(request)?;
    driver.read_exact(answer)
}

/// Connects; waits a moment if the driver does not listen yet.
pub fn connect(path: &PathBuf) -> io::Result<UnixStream> {
    let give_up = Instant::now() + Duration::from_secs(5);
    loop {
        match UnixStream::connect(path) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() > give_up => {
                return Err(io::Error::new(
                    error.kind(),
                    format!("cannot reach the driver at {}: {error}", path.display()),
                ));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
