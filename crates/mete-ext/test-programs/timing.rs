//! What the programs measure by.

use rustix::time::{ClockId, clock_gettime};

pub const MILLISECOND_NS: i64 = 1_000_000;
pub const SECOND_NS: i64 = 1_000_000_000;

pub fn now(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * SECOND_NS + time.tv_nsec
}

pub fn compute(length_ns: i64) {
    let begin = now(ClockId::ThreadCPUTime);
    while now(ClockId::ThreadCPUTime) - begin < length_ns {}
}

/// What this part of the waits, in hundredths, exceeds, in microseconds.
pub fn exceeded(sorted: &[i64], percent: usize) -> i64 {
    sorted.get(sorted.len() * (100 - percent) / 100).map_or(0, |wait| wait / 1000)
}
