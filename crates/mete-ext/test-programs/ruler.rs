//! Has a policy of the catalogue schedule all tasks from outside the kernel. Says `ruling`; then, for each
//! line that it reads, what was done so far as `NAME=NUMBER` words. It ends with its input.
//!
//!     mete-ext-ruler POLICY

use std::env;
use std::io::{self, BufRead};
use std::process::ExitCode;

use mete_ext::{PolicyScheduler, PolicyStatus};
use mete_policy::by_name;

fn print(status: &PolicyStatus) {
    println!(
        "decisions={} decided={} late={} alone={} undecided={} hastened={} extended={} preempted={} rounds={} lost={} own_ns={} ended={}",
        status.decisions,
        status.decided,
        status.late,
        status.alone,
        status.undecided,
        status.hastened,
        status.extended,
        status.preempted,
        status.rounds,
        status.lost,
        status.own.get(),
        u32::from(status.ended.is_some()),
    );
    if let Some(ended) = &status.ended {
        eprintln!("{ended}");
    }
}

fn main() -> ExitCode {
    let Some(policy) = env::args().nth(1).as_deref().and_then(by_name) else {
        eprintln!("usage: mete-ext-ruler POLICY");
        return ExitCode::from(2);
    };
    let scheduler = match PolicyScheduler::start(policy) {
        Ok(scheduler) => scheduler,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    println!("ruling");
    for line in io::stdin().lock().lines() {
        if line.is_err() {
            break;
        }
        print(&scheduler.status());
    }
    ExitCode::SUCCESS
}
