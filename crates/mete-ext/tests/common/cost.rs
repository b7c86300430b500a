//! What a decision costs, by the kernel's account of its programs. In an emulated machine whose time goes by instructions, that
//! is their number.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use mete_ext::GroupScheduler;
use mete_kernel::accounts::Accounts;

use super::{Ruling, go_ahead, ruling};

/// A scheduler whose programs the kernel takes account of; `None` where this test cannot run, with the reason printed.
pub fn accounted(test: &str) -> Option<(Ruling, Accounts)> {
    if !is_counted(test) {
        return None;
    }
    let scheduler = ruling(test)?;
    go_ahead();
    Some((scheduler, Accounts::begin().unwrap()))
}

/// Whether time goes by instructions here; else this test says that it is skipped. Costs in real time differ with all that
/// the machine does beside.
fn is_counted(test: &str) -> bool {
    let is_counted = env::var_os("METE_VM_COUNTED").is_some_and(|value| value == "1");
    if !is_counted {
        println!(
            "SKIPPED: {test}: time does not go by instructions here (scripts/vm/test.sh --counted mete-ext)"
        );
    }
    is_counted
}

/// The operations of a decision among tasks that compute all the time.
const OPERATIONS: [&str; 4] = ["dispatch", "running", "stopping", "enqueue"];

/// Threads that compute, until this is dropped.
struct Crowd(Child);

impl Crowd {
    fn of(threads: u32) -> Crowd {
        // The one that starts and wakes them would wait among those that it has woken already. They inherit nothing.
        let mut command = Command::new("chrt");
        command.args(["-R", "-f", "1", env!("CARGO_BIN_EXE_mete-ext-crowd"), &threads.to_string(), "300"]);
        let mut crowd = Crowd(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut said = String::new();
        BufReader::new(crowd.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n", "{threads} threads");
        assert!(runnable() >= threads, "{} of {threads} are runnable", runnable());
        crowd
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many tasks run or wait for a processor.
fn runnable() -> u32 {
    let text = fs::read_to_string("/proc/stat").unwrap();
    text.lines().find_map(|line| line.strip_prefix("procs_running ")).unwrap().trim().parse().unwrap()
}

/// What a decision among this number of threads costs, in nanoseconds: the least of three stretches. What is rare, as that
/// thousands go ahead at once after they have waited for seconds, is not in each of them; what a decision always takes is.
pub fn cost((scheduler, accounts): (&GroupScheduler, &Accounts), threads: u32, length: Duration) -> f64 {
    let _crowd = Crowd::of(threads);
    let costs = [(); 3].map(|()| cost_in(scheduler, accounts, threads, length));
    let status = scheduler.status();
    println!("{threads} threads: {costs:.0?} ns, {status:?}");
    assert_eq!(status.ended, None, "the kernel has ended it");
    costs.into_iter().fold(f64::MAX, f64::min)
}

/// The sum of what each operation takes in the mean.
fn cost_in(scheduler: &GroupScheduler, accounts: &Accounts, threads: u32, length: Duration) -> f64 {
    let before = accounts.of(OPERATIONS).unwrap();
    sleep(length);
    let after = accounts.of(OPERATIONS).unwrap();
    let mut sum = 0.0;
    for (name, (after, before)) in OPERATIONS.into_iter().zip(after.into_iter().zip(before)) {
        let account = after.since(before);
        println!("{threads} threads: {name} {account:?}");
        assert!(account.runs > 300, "{name} {account:?}, {:?}", scheduler.status());
        sum += account.mean_ns().unwrap();
    }
    sum
}
