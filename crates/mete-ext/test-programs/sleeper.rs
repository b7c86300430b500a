//! A task that sleeps 5 ms and computes for 0.2 ms, again and again, and says how late it ran: what half of
//! its waits, and what all but a hundredth of them, did not exceed, in microseconds. It leaves out as many as
//! a scheduler may need to learn how the task runs, after the long run in which the program was loaded.
//!
//!     mete-ext-sleeper ROUNDS [PERIOD [COMPUTES]]
//!
//! With a period, in milliseconds, it wakes at its multiples, together with all others that have the same one. It computes
//! for as many milliseconds as it is told.

mod timing;

use std::env;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};
use timing::{MILLISECOND_NS, SECOND_NS, compute, exceeded, now};

const SLEEP_NS: i64 = 5_000_000;
const BURST_NS: i64 = 200_000;
const LEARNED: usize = 50;

/// Sleeps until a time and answers how much later it is then.
fn late(until: i64) -> i64 {
    let time = Timespec { tv_sec: until / SECOND_NS, tv_nsec: until % SECOND_NS };
    while clock_nanosleep_absolute(ClockId::Monotonic, &time).is_err() {}
    now(ClockId::Monotonic) - until
}

fn argument(nth: usize) -> Option<i64> {
    env::args().nth(nth)?.parse().ok()
}

fn main() {
    let rounds = argument(1).and_then(|rounds| rounds.try_into().ok()).unwrap_or(1000_usize);
    let period_ns = argument(2).map(|milliseconds| milliseconds * MILLISECOND_NS);
    let burst_ns = argument(3).map_or(BURST_NS, |milliseconds| milliseconds * MILLISECOND_NS);
    let mut waits = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let now = now(ClockId::Monotonic);
        waits.push(late(period_ns.map_or(now + SLEEP_NS, |period| (now / period + 1) * period)));
        compute(burst_ns);
    }
    waits.drain(..LEARNED.min(rounds));
    waits.sort_unstable();
    println!("{} {}", exceeded(&waits, 50), exceeded(&waits, 1));
}
