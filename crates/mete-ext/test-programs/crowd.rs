//! Threads that all want to compute at about the same time, however many they are: they wait until the last one is there. Says
//! `computing` then, and ends with its input. Those that compute already would keep it from starting the others.
//!
//!     mete-ext-crowd THREADS

use std::env;
use std::hint::spin_loop;
use std::io::{Read, stdin};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, sleep};
use std::time::Duration;

/// How often a waiting thread looks whether the last one is there.
const LOOK: Duration = Duration::from_secs(1);
const STACK: usize = 64 * 1024;

static BEGINS: AtomicBool = AtomicBool::new(false);

fn compute() {
    while !BEGINS.load(Ordering::Acquire) {
        sleep(LOOK);
    }
    loop {
        spin_loop();
    }
}

fn main() {
    let threads = env::args().nth(1).and_then(|threads| threads.parse().ok()).unwrap_or(1_usize);
    for _ in 0..threads {
        if let Err(error) = Builder::new().stack_size(STACK).spawn(compute) {
            eprintln!("no more threads can be started: {error}");
            exit(1);
        }
    }
    BEGINS.store(true, Ordering::Release);
    // Each has looked once more then, or wants to.
    sleep(LOOK + LOOK / 4);
    println!("computing");
    // An error means that the input has ended.
    let _ = stdin().read(&mut [0]);
    exit(0);
}
