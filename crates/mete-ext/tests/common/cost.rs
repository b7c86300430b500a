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

/// What a decision among this number of threads costs, in nanoseconds: the sum of what its operations take, of each the median
/// of this number of stretches, each of this length. What is rare is in a few of them only: that thousands go ahead at once after they have
/// waited for seconds, or that an emulated processor's turn ends within a program, so that its account has the turns of all others.
pub fn cost(
    (scheduler, accounts): (&GroupScheduler, &Accounts),
    threads: u32,
    (stretches, length): (usize, Duration),
) -> f64 {
    let _crowd = Crowd::of(threads);
    let means: Vec<_> = (0..stretches).map(|_| means_in(scheduler, accounts, length)).collect();
    let status = scheduler.status();
    assert_eq!(status.ended, None, "the kernel has ended it");
    let costs = [0, 1, 2, 3].map(|operation| median(means.iter().map(|means| means[operation])));
    println!("{threads} threads: {OPERATIONS:?} {costs:.0?} ns, {status:?}");
    costs.iter().sum()
}

/// What each operation takes in the mean of this stretch, in nanoseconds.
fn means_in(scheduler: &GroupScheduler, accounts: &Accounts, length: Duration) -> [f64; 4] {
    let before = accounts.of(OPERATIONS).unwrap();
    sleep(length);
    let after = accounts.of(OPERATIONS).unwrap();
    [0, 1, 2, 3].map(|operation| {
        let account = after[operation].since(before[operation]);
        assert!(account.runs > 10, "{} {account:?}, {:?}", OPERATIONS[operation], scheduler.status());
        account.mean_ns().unwrap()
    })
}

fn median(costs: impl Iterator<Item = f64>) -> f64 {
    let mut costs: Vec<_> = costs.collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}
