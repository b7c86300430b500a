//! A driver with a probe, for the tests of this crate. `mete-sched-driver SOCKET` answers requests of one
//! byte, prints `here` when it listens, and ends with its input. With `DOMAIN CORRESPONDENT` behind the
//! socket, it reports requests that no client has made, in the name of that domain.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use mete_probe::{DomainId, NO_DOMAIN, event, probe};

event! {
    /// A request was answered.
    static REQUEST: access "request";
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A session of its own, like the parts of the demo, and for the same reason.
    let _ = rustix::process::setsid();
    let socket = std::env::args().nth(1).ok_or("where?")?;
    let listener = UnixListener::bind(socket)?;
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    let forged: Vec<u16> = std::env::args().skip(2).map(|domain| domain.parse()).collect::<Result<_, _>>()?;
    if let [domain, correspondent] = forged[..] {
        std::thread::spawn(move || forge(DomainId::new(domain), DomainId::new(correspondent)));
    }
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

fn forge(domain: DomainId, correspondent: DomainId) {
    mete_probe::set_domain(domain);
    loop {
        probe!(REQUEST, correspondent);
        std::thread::sleep(Duration::from_micros(200));
    }
}
