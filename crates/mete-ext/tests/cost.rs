//! What a decision costs, by the kernel's account of its programs. In a virtual machine whose time goes by instructions,
//! that is their number.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::start;
use libbpf_rs::query::ProgInfoIter;
use mete_ext::GroupScheduler;

const CROWD: &str = env!("CARGO_BIN_EXE_mete-ext-crowd");
/// The kernel takes account of programs only if it is told to.
const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";
/// The operations that belong to a decision among tasks that compute all the time.
const OPERATIONS: [&str; 4] = ["dispatch", "running", "stopping", "enqueue"];
/// Time for 500 decisions on each processor.
const LENGTH: Duration = Duration::from_millis(500);

/// Threads that compute until this is dropped.
struct Crowd(Child);

impl Crowd {
    fn of(threads: u32) -> Crowd {
        let mut command = Command::new(CROWD);
        let mut child =
            command.arg(threads.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "computing\n", "{threads} threads");
        assert!(runnable() >= threads, "{} of {threads} want to compute", runnable());
        Crowd(child)
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

/// The time that the scheduler's programs have taken, in nanoseconds.
fn time_of_programs() -> u64 {
    let is_ours = |name: &str| OPERATIONS.contains(&name);
    ProgInfoIter::default()
        .filter(|program| is_ours(&program.name.to_string_lossy()))
        .map(|it| it.run_time_ns)
        .sum()
}

/// What a decision among this number of threads costs.
fn cost(scheduler: &GroupScheduler, threads: u32) -> f64 {
    let _crowd = Crowd::of(threads);
    let before = (time_of_programs(), scheduler.status().decisions);
    sleep(LENGTH);
    let (time, decisions) = (time_of_programs() - before.0, scheduler.status().decisions - before.1);
    assert!(decisions > 500, "{decisions} decisions, {:?}", scheduler.status());
    time as f64 / decisions as f64
}

#[test]
fn vtrr_6_a_decision_among_10_000_tasks_costs_hardly_more_than_one_among_10() {
    let Some((scheduler, _alone)) =
        start("vtrr_6_a_decision_among_10_000_tasks_costs_hardly_more_than_one_among_10")
    else {
        return;
    };
    fs::write(SWITCH, "1").unwrap();
    let costs = [10, 1000, 10_000].map(|threads| cost(&scheduler, threads));
    fs::write(SWITCH, "0").unwrap();
    println!("a decision among 10, 1,000 and 10,000 tasks: {costs:.0?} ns");
    let [least, most] =
        [costs.iter().copied().fold(f64::MAX, f64::min), costs.iter().copied().fold(0.0, f64::max)];
    assert!(most < 1.3 * least, "{costs:?}");
}
