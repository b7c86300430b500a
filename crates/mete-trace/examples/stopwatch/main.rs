//! How long sorting takes, measured with the two events of the stopwatch schema.
//!
//!     cargo build --release -p mete-trace --example stopwatch
//!     mete record --schema stopwatch -o trace -- target/release/examples/stopwatch 1000
//!     mete show trace
//!
//! `events.rs` is what `mete schema generate rust stopwatch` prints. Without a recorder, the program does the
//! same work and records nothing. Compiled with `--cfg mete_disable`, it has no code for recording.

use std::hint::black_box;
use std::sync::LazyLock;

use mete_trace::Channel;

include!("events.rs");

static CHANNEL: LazyLock<Channel> = LazyLock::new(|| Channel::from_environment(&EVENTS));

const SORTING: u32 = 0;

fn emit(record: &[u8]) {
    CHANNEL.emit(record);
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(100);
    let process = std::process::id() as i32;
    for round in 0..rounds {
        let mut numbers: Vec<_> = (0..512).map(|at| (at * 7919 + round) % 1009).collect();
        mete_log!(emit, START(SORTING, process, round));
        black_box(&mut numbers).sort_unstable();
        mete_log!(emit, STOP(SORTING, process, numbers[0]));
    }
}
