//! Threads that compute, all of which begin when the last one is there: where they began one after the other, each new one
//! would wait behind all others. It says "ready" once each of them computes, and ends by itself, also if there may be fewer threads.
//!
//!     mete-ext-crowd THREADS SECONDS

mod instructions;

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::futex;

/// Where threads wait for each other. Not a barrier of the standard library: that hands a lock from one to the next, so that
/// each would have to run before the next one could. Here one call of the last one wakes all.
struct Gate {
    missing: AtomicU32,
    is_open: AtomicU32,
}

impl Gate {
    /// For this number of threads.
    fn of(threads: u32) -> Gate {
        Gate { missing: AtomicU32::new(threads), is_open: AtomicU32::new(0) }
    }

    /// Whether all but one are here.
    fn misses_one(&self) -> bool {
        self.missing.load(Ordering::Acquire) == 1
    }

    /// Waits until all are here.
    fn pass(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.is_open.store(1, Ordering::Release);
            // It fails for no address that there is.
            let _ = futex::wake(&self.is_open, futex::Flags::PRIVATE, i32::MAX as u32);
        }
        while self.is_open.load(Ordering::Acquire) == 0 {
            // It returns at once where the gate has opened meanwhile.
            let _ = futex::wait(&self.is_open, futex::Flags::PRIVATE, 0, None);
        }
    }
}

fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        instructions::compute();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let numbers = env::args().skip(1).map(|number| number.parse()).collect::<Result<Vec<u32>, _>>()?;
    let [threads, seconds] = numbers[..] else { return Err("mete-ext-crowd THREADS SECONDS".into()) };
    // And this one, which computes nothing.
    let (gate, computing) = (Gate::of(threads + 1), AtomicU32::new(0));
    let time = Duration::from_secs(seconds.into());
    thread::scope(|scope| {
        for _ in 0..threads {
            // Thousands of them are to fit into a small machine.
            let started = thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, || {
                gate.pass();
                computing.fetch_add(1, Ordering::Relaxed);
                compute(time);
            });
            // Those that are there would wait for ever.
            if let Err(error) = started {
                eprintln!("no thread: {error}");
                process::exit(1);
            }
        }
        // This one is the last, and wakes the others: each of those may be kept waiting by the ones that it has woken already.
        while !gate.misses_one() {
            thread::sleep(Duration::from_millis(10));
        }
        gate.pass();
        while computing.load(Ordering::Relaxed) < threads {
            thread::sleep(Duration::from_millis(10));
        }
        // Where the reader has gone, they compute all the same.
        let _ = writeln!(io::stdout(), "ready");
    });
    Ok(())
}
