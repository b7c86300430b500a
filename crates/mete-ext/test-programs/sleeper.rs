//! A task that sleeps 5 ms and computes for 0.2 ms, again and again, and says how late it ran: what half of
//! its waits, and what all but a hundredth of them, did not exceed, in microseconds. It leaves out as many as
//! a scheduler may need to learn how the task runs, after the long run in which the program was loaded.
//!
//!     mete-ext-sleeper ROUNDS

use std::env;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

const SLEEP_NS: i64 = 5_000_000;
const BURST_NS: i64 = 200_000;
const SECOND_NS: i64 = 1_000_000_000;
const LEARNED: usize = 50;

fn now(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * SECOND_NS + time.tv_nsec
}

/// Sleeps until a time and answers how much later it is then.
fn late(until: i64) -> i64 {
    let time = Timespec { tv_sec: until / SECOND_NS, tv_nsec: until % SECOND_NS };
    while clock_nanosleep_absolute(ClockId::Monotonic, &time).is_err() {}
    now(ClockId::Monotonic) - until
}

fn compute() {
    let begin = now(ClockId::ThreadCPUTime);
    while now(ClockId::ThreadCPUTime) - begin < BURST_NS {}
}

/// What this part of the waits, in hundredths, exceeds, in microseconds.
fn exceeded(sorted: &[i64], percent: usize) -> i64 {
    sorted.get(sorted.len() * (100 - percent) / 100).map_or(0, |wait| wait / 1000)
}

fn main() {
    let rounds = env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(1000_usize);
    let mut waits = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        waits.push(late(now(ClockId::Monotonic) + SLEEP_NS));
        compute();
    }
    waits.drain(..LEARNED.min(rounds));
    waits.sort_unstable();
    println!("{} {}", exceeded(&waits, 50), exceeded(&waits, 1));
}
