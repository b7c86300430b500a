//! The driver: serves the requests of all its clients, one after the other, on one processor.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use mete_measure::processor::pin_bare;
use mete_probe::{DomainId, NO_DOMAIN, event, probe};
use rustix::event::{PollFd, PollFlags};

use super::work::{Buffer, processor};
use crate::board::Counts;

/// Bytes of a request: the processor that the client runs on, and padding.
pub const REQUEST_BYTES: usize = 64;
/// Bytes of an answer: the processor that the driver runs on, and data.
pub const ANSWER_BYTES: usize = 4096;

event! {
    /// A request was served; the correspondent is the client's domain. This is the only row for a request:
    /// the scheduler needs no other.
    static REQUEST: access "request";
}

struct Client {
    stream: UnixStream,
    pid: u32,
}

impl Client {
    /// The client's domain. It is looked up at every request, because the scheduler may bind the client anew.
    fn domain(&self) -> DomainId {
        mete_probe::domain_of_process(self.pid).unwrap_or(NO_DOMAIN)
    }
}

/// Serves until the process is ended.
pub fn serve(path: &Path, on_processor: usize, counts: &Counts) -> io::Result<()> {
    pin_bare(on_processor)?;
    let listener = UnixListener::bind(path)?;
    let mut clients = HashMap::new();
    let mut data = Buffer::new(32 * 1024);
    loop {
        for ready in wait(&listener, &clients)? {
            if ready == listener.as_raw_fd() {
                let client = accept(&listener)?;
                clients.insert(client.stream.as_raw_fd(), client);
            } else if let Some(client) = clients.get_mut(&ready)
                && answer(client, &mut data, counts).is_err()
            {
                // The client has ended: each stretch of the demo has clients of its own.
                clients.remove(&ready);
            }
        }
    }
}

fn accept(listener: &UnixListener) -> io::Result<Client> {
    let stream = listener.accept()?.0;
    let pid = rustix::net::sockopt::socket_peercred(&stream)?.pid;
    Ok(Client { stream, pid: pid.as_raw_nonzero().get() as u32 })
}

/// The descriptors that have something to read.
fn wait(listener: &UnixListener, clients: &HashMap<i32, Client>) -> io::Result<Vec<i32>> {
    let mut polled = vec![PollFd::new(listener, PollFlags::IN)];
    polled.extend(clients.values().map(|client| PollFd::new(&client.stream, PollFlags::IN)));
    rustix::event::poll(&mut polled, None)?;
    // In the order of `polled`: nothing changes the map meanwhile, so its keys and values come in the same
    // order.
    let descriptors = std::iter::once(listener.as_raw_fd()).chain(clients.keys().copied());
    let ready = descriptors.zip(&polled).filter(|(_, entry)| !entry.revents().is_empty());
    Ok(ready.map(|(descriptor, _)| descriptor).collect())
}

fn answer(client: &mut Client, data: &mut Buffer, counts: &Counts) -> io::Result<()> {
    let mut request = [0; REQUEST_BYTES];
    client.stream.read_exact(&mut request)?;
    let client_ran_on = u32::from_le_bytes([request[0], request[1], request[2], request[3]]);
    data.touch();
    let mut answer = [0; ANSWER_BYTES];
    answer[..4].copy_from_slice(&processor().to_le_bytes());
    client.stream.write_all(&answer)?;
    // After the answer, so that the client does not wait for the counting and the logging.
    counts.count(client_ran_on != processor());
    probe!(REQUEST, client.domain());
    Ok(())
}
