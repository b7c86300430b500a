//! Threads that compute, all of which begin when the last one is there: where they began one after the other, each new one
//! would wait behind all others. It says "ready" once all compute, and ends by itself.
//!
//!     mete-ext-crowd THREADS SECONDS

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Waits until so many threads have come here. Not by a lock: it would be handed from one to the next, and each would have to
/// run first.
fn meet(there: &AtomicU64, threads: u64) {
    there.fetch_add(1, Ordering::Relaxed);
    while there.load(Ordering::Relaxed) < threads {
        thread::sleep(Duration::from_millis(10));
    }
}

fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {}
}

fn main() {
    let mut numbers = env::args().skip(1).filter_map(|number| number.parse().ok());
    let (threads, seconds) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1));
    let (begun, computing, time) = (AtomicU64::new(0), AtomicU64::new(0), Duration::from_secs(seconds));
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| {
                meet(&begun, threads);
                computing.fetch_add(1, Ordering::Relaxed);
                compute(time);
            });
        }
        meet(&begun, threads);
        meet(&computing, threads);
        println!("ready");
        compute(time);
    });
}
