//! A load on the network like the paper's Netperf (§8.1): pairs of processes that ask and answer over the loopback
//! device, 100 bytes one way and 200 the other.

use std::mem;
use std::sync::atomic::Ordering;

use crate::crew::{Crew, Desk, now_ns, sleep_ns};
use crate::reason::Reason;

const ASKED: usize = 100;
const ANSWERED: usize = 200;

/// They end by themselves: what wakes one another so often may keep from the processors whoever would end it.
const LIFE_NS: u64 = 4_000_000_000;

const WORDS: usize = 2;
/// The server's: its port, once it listens.
const PORT: usize = 0;
/// The client's: answers so far.
const DONE: usize = 1;

/// So many pairs. Even members serve the odd ones behind them.
pub struct Network(Crew);

impl Network {
    /// Starts them, so that they wait.
    ///
    /// # Errors
    ///
    /// If there are no processes.
    pub fn start(pairs: usize) -> Result<Network, Reason> {
        Crew::start(&vec![None; 2 * pairs], WORDS, talk).map(Network)
    }

    /// Has them begin.
    pub fn go(&self) {
        self.0.go();
    }

    /// Questions that were answered so far.
    pub fn answers(&self) -> u64 {
        let clients = (1..self.0.pids().len()).step_by(2);
        clients.map(|nth| self.0.words(nth)[DONE].load(Ordering::Acquire)).sum()
    }
}

/// Ends where anything fails: then there are no answers, which is seen.
fn talk(desk: &Desk<'_>) {
    let _ = if desk.nth.is_multiple_of(2) { serve(desk) } else { ask(desk) };
}

fn serve(desk: &Desk<'_>) -> Option<()> {
    let listening = socket()?;
    let mut address = loopback(0);
    let mut length = mem::size_of_val(&address) as libc::socklen_t;
    let at: *mut libc::sockaddr = (&raw mut address).cast();
    // SAFETY: the address is as long as is said, and lives across the calls.
    let connection = unsafe {
        if libc::bind(listening, at, length) != 0
            || libc::listen(listening, 1) != 0
            || libc::getsockname(listening, at, &mut length) != 0
        {
            return None;
        }
        desk.words()[PORT].store(u16::from_be(address.sin_port).into(), Ordering::Release);
        libc::accept(listening, std::ptr::null_mut(), std::ptr::null_mut())
    };
    let connection = (connection >= 0).then_some(connection)?;
    no_delay(connection);
    let (mut bytes, end) = ([0; ANSWERED], now_ns().wrapping_add(LIFE_NS));
    while !desk.is_over() && now_ns() < end {
        receive(connection, &mut bytes[..ASKED])?;
        send(connection, &bytes)?;
    }
    Some(())
}

fn ask(desk: &Desk<'_>) -> Option<()> {
    let port = loop {
        match desk.of(desk.nth - 1)[PORT].load(Ordering::Acquire) {
            0 => sleep_ns(200_000),
            port => break port as u16,
        }
    };
    let connection = socket()?;
    let address = loopback(port);
    let length = mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is as long as is said.
    if unsafe { libc::connect(connection, (&raw const address).cast(), length) } != 0 {
        return None;
    }
    no_delay(connection);
    let (mut bytes, done) = ([0; ANSWERED], &desk.words()[DONE]);
    let end = now_ns().wrapping_add(LIFE_NS);
    while !desk.is_over() && now_ns() < end {
        send(connection, &bytes[..ASKED])?;
        receive(connection, &mut bytes)?;
        // Nobody else writes it.
        done.store(done.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }
    Some(())
}

fn socket() -> Option<libc::c_int> {
    // SAFETY: takes no memory.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    (socket >= 0).then_some(socket)
}

fn loopback(port: u16) -> libc::sockaddr_in {
    // SAFETY: all-zero is a valid address.
    let mut address: libc::sockaddr_in = unsafe { mem::zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    address
}

fn no_delay(socket: libc::c_int) {
    let on: libc::c_int = 1;
    let length = mem::size_of_val(&on) as libc::socklen_t;
    // SAFETY: reads one number.
    unsafe { libc::setsockopt(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, (&raw const on).cast(), length) };
}

fn send(socket: libc::c_int, bytes: &[u8]) -> Option<()> {
    // SAFETY: the bytes are as many as is said.
    let sent = unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    (sent == bytes.len() as isize).then_some(())
}

/// All of them.
fn receive(socket: libc::c_int, bytes: &mut [u8]) -> Option<()> {
    // SAFETY: there is room for as many as is said.
    let got = unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), bytes.len(), libc::MSG_WAITALL) };
    (got == bytes.len() as isize).then_some(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn klog_9_pairs_over_the_loopback_network_ask_and_answer() -> Result<(), Reason> {
        let network = Network::start(2)?;
        assert_eq!(network.answers(), 0);
        network.go();
        let begin = Instant::now();
        while network.answers() < 20 {
            assert!(begin.elapsed() < Duration::from_secs(20), "{} answers", network.answers());
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
