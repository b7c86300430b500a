//! A program with probes, for the tests: its first argument says what it does, the rest with what.
//! It ends when its standard input does, so that no test leaves it behind.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use mete_probe::{enter, event, exit, probe, sample};

event! {
    static NUMBER: access "number";
    static PHASE: phase "phase";
    static VALUE: sample "value";
}

static IS_OVER: AtomicBool = AtomicBool::new(false);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        IS_OVER.store(true, Ordering::Relaxed);
    });
    match arguments[0].as_str() {
        "count" => count(arguments[1].parse().expect("a number of threads")),
        other => panic!("no such role: {other}"),
    }
}

/// Threads 1, 2, … that log numbers 0, 1, 2, … with their own number as correspondent, until the
/// end; each prints how many it passed.
fn count(threads: u16) {
    let threads: Vec<_> = (1..=threads).map(|thread| std::thread::spawn(move || count_one(thread))).collect();
    for thread in threads {
        println!("{}", thread.join().expect("a counting thread"));
    }
}

fn count_one(thread: u16) -> u64 {
    let mut number = 0;
    while !IS_OVER.load(Ordering::Relaxed) {
        let phase = enter!(PHASE, number);
        probe!(NUMBER, thread, number);
        sample!(VALUE, number);
        exit!(PHASE, phase, thread, number + 3);
        number += 1;
    }
    number
}
