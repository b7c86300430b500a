//! Threads that compute, all of which begin when the last one is there: where they began one after the other, each new one
//! would wait behind all others. It says "ready" once all compute, and ends by itself, also if there may be fewer threads.
//!
//!     mete-ext-crowd THREADS SECONDS

mod instructions;

use std::env;
use std::error::Error;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Waits until this number of threads has come here. Not by a lock: it would be handed from one to the next, and each would have to
/// run first.
fn meet(there: &AtomicU64, threads: u64) {
    there.fetch_add(1, Ordering::Relaxed);
    while there.load(Ordering::Relaxed) < threads {
        thread::sleep(Duration::from_millis(10));
    }
}

fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        instructions::compute();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let numbers = env::args().skip(1).map(|number| number.parse()).collect::<Result<Vec<u64>, _>>()?;
    let [threads, seconds] = numbers[..] else { return Err("mete-ext-crowd THREADS SECONDS".into()) };
    let (begun, computing, time) = (AtomicU64::new(0), AtomicU64::new(0), Duration::from_secs(seconds));
    thread::scope(|scope| {
        for _ in 1..threads {
            let started = thread::Builder::new().spawn_scoped(scope, || {
                meet(&begun, threads);
                computing.fetch_add(1, Ordering::Relaxed);
                compute(time);
            });
            // Those that are there would wait for ever.
            if let Err(error) = started {
                eprintln!("no thread: {error}");
                process::exit(1);
            }
        }
        meet(&begun, threads);
        meet(&computing, threads);
        println!("ready");
        compute(time);
    });
    Ok(())
}
