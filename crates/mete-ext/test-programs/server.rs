//! A server that answers requests within a tenth of a millisecond, and computes for long when a timer wakes it. Requests are packets; or,
//! with a device, it asks itself, and reads a block from there each time.
//!
//! It says how long those waited that found it asleep, or reading took, after the time that a scheduler may need to learn how it runs: what
//! half of these waits, and what all but a twentieth of them, did not exceed, in microseconds; and how many they were.
//!
//!     mete-ext-server SECONDS [DEVICE]

mod timing;

use std::fs::File;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::Duration;
use std::{env, io};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use timing::{MILLISECOND_NS, SECOND_NS, compute, exceeded, now};

const BETWEEN_REQUESTS: Duration = Duration::from_millis(15);
const ANSWER_NS: i64 = MILLISECOND_NS / 10;
const BETWEEN_BATCHES_NS: i64 = 200 * MILLISECOND_NS;
const BATCH_NS: i64 = 4 * MILLISECOND_NS;
const LEARNED_NS: i64 = 4 * SECOND_NS;
const BLOCK: usize = 4096;

/// A block as devices want it that are read past the cache.
#[repr(align(4096))]
struct Block([u8; BLOCK]);

/// The waits that count, and since when, and for how long, they are taken.
struct Waits {
    begin: i64,
    length: i64,
    found: Vec<i64>,
}

impl Waits {
    fn is_over(&self) -> bool {
        now(ClockId::Monotonic) - self.begin > self.length
    }

    fn add(&mut self, since: i64, until: i64) {
        if since - self.begin > LEARNED_NS {
            self.found.push(until - since);
        }
    }
}

/// Each request has the time at which it is sent in it.
fn ask(server: SocketAddr) -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    loop {
        sleep(BETWEEN_REQUESTS);
        socket.send_to(&now(ClockId::Monotonic).to_ne_bytes(), server)?;
    }
}

fn serve(waits: &mut Waits) -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?;
    std::thread::spawn(move || ask(address));
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty())?;
    let period = Timespec { tv_sec: 0, tv_nsec: BETWEEN_BATCHES_NS };
    timerfd_settime(
        &timer,
        TimerfdTimerFlags::empty(),
        &Itimerspec { it_interval: period, it_value: period },
    )?;
    while !waits.is_over() {
        let mut both = [PollFd::new(&socket, PollFlags::IN), PollFd::new(&timer, PollFlags::IN)];
        let asleep = now(ClockId::Monotonic);
        poll(&mut both, None)?;
        let woke = now(ClockId::Monotonic);
        let [is_asked, is_time] = both.map(|one| one.revents().contains(PollFlags::IN));
        if is_asked {
            let mut sent = [0; 8];
            socket.recv(&mut sent)?;
            let sent = i64::from_ne_bytes(sent);
            // Not those that came during a batch or an answer.
            if sent > asleep && !is_time {
                waits.add(sent, woke);
            }
            compute(ANSWER_NS);
        }
        if is_time {
            rustix::io::read(&timer, &mut [0; 8])?;
            compute(BATCH_NS);
        }
    }
    Ok(())
}

fn read(device: &str, waits: &mut Waits) -> io::Result<()> {
    let device = File::from(open(device, OFlags::RDONLY | OFlags::DIRECT, Mode::empty())?);
    let mut block = Box::new(Block([0; BLOCK]));
    let mut batch = now(ClockId::Monotonic);
    while !waits.is_over() {
        sleep(BETWEEN_REQUESTS);
        if now(ClockId::Monotonic) - batch > BETWEEN_BATCHES_NS {
            compute(BATCH_NS);
            batch = now(ClockId::Monotonic);
            continue;
        }
        let asked = now(ClockId::Monotonic);
        device.read_exact_at(&mut block.0, 0)?;
        waits.add(asked, now(ClockId::Monotonic));
        compute(ANSWER_NS);
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let seconds: i64 = env::args().nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(10);
    let mut waits = Waits { begin: now(ClockId::Monotonic), length: seconds * SECOND_NS, found: Vec::new() };
    match env::args().nth(2) {
        Some(device) => read(&device, &mut waits)?,
        None => serve(&mut waits)?,
    }
    let mut found = waits.found;
    found.sort_unstable();
    println!("{} {} {}", exceeded(&found, 50), exceeded(&found, 5), found.len());
    Ok(())
}
