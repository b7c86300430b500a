//! A server that answers requests within a tenth of a millisecond, and computes for long when a timer wakes it. It says how late it
//! began with those requests that found it asleep, after the time that a scheduler may need to learn how it runs: what half of these
//! waits, and what all but a twentieth of them, did not exceed, in microseconds; and how many they were.
//!
//!     mete-ext-server SECONDS

use std::env;
use std::net::UdpSocket;
use std::thread::sleep;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

const MILLISECOND_NS: i64 = 1_000_000;
const SECOND_NS: i64 = 1_000_000_000;
const BETWEEN_REQUESTS: Duration = Duration::from_millis(15);
const ANSWER_NS: i64 = MILLISECOND_NS / 10;
const BETWEEN_BATCHES_NS: i64 = 200 * MILLISECOND_NS;
const BATCH_NS: i64 = 4 * MILLISECOND_NS;
const LEARNED_NS: i64 = 4 * SECOND_NS;

fn now(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * SECOND_NS + time.tv_nsec
}

fn compute(length_ns: i64) {
    let begin = now(ClockId::ThreadCPUTime);
    while now(ClockId::ThreadCPUTime) - begin < length_ns {}
}

/// Each request has the time at which it is sent in it.
fn ask(server: std::net::SocketAddr) -> std::io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    loop {
        sleep(BETWEEN_REQUESTS);
        socket.send_to(&now(ClockId::Monotonic).to_ne_bytes(), server)?;
    }
}

/// What this part of the waits, in hundredths, exceeds, in microseconds.
fn exceeded(sorted: &[i64], percent: usize) -> i64 {
    sorted.get(sorted.len() * (100 - percent) / 100).map_or(0, |wait| wait / 1000)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds: i64 = env::args().nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(10);
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
    let begin = now(ClockId::Monotonic);
    let mut waits = Vec::new();
    while now(ClockId::Monotonic) - begin < seconds * SECOND_NS {
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
            if sent > asleep && !is_time && sent - begin > LEARNED_NS {
                waits.push(woke - sent);
            }
            compute(ANSWER_NS);
        }
        if is_time {
            rustix::io::read(&timer, &mut [0; 8])?;
            compute(BATCH_NS);
        }
    }
    waits.sort_unstable();
    println!("{} {} {}", exceeded(&waits, 50), exceeded(&waits, 5), waits.len());
    Ok(())
}
