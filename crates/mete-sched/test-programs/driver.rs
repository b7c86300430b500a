//! A driver with a probe, for the tests of this crate: `mete-sched-driver SOCKET` answers requests of
//! one byte, says `here` once it listens, and ends with its input.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use mete_probe::{NO_DOMAIN, event, probe};

event! {
    /// A request was answered.
    static REQUEST: access "request";
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A session of its own, as the parts of the demo have it and for their reason.
    let _ = rustix::process::setsid();
    let socket = std::env::args().nth(1).ok_or("where?")?;
    let listener = UnixListener::bind(socket)?;
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    println!("here");
    io::stdout().flush()?;
    for client in listener.incoming() {
        let client = client?;
        std::thread::spawn(move || answer(client));
    }
    Ok(())
}

fn answer(mut client: UnixStream) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(&client)?.pid.as_raw_nonzero().get() as u32;
    let mut request = [0];
    while client.read(&mut request)? == 1 {
        probe!(REQUEST, mete_probe::domain_of_process(peer).unwrap_or(NO_DOMAIN));
        client.write_all(&request)?;
    }
    Ok(())
}
