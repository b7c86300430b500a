//! Has a policy of the catalogue schedule all tasks from outside the kernel. Says `ruling`; then, for each
//! empty line that it reads, what was done so far as `NAME=NUMBER` words. A line with the name of another
//! policy has that rule, and is answered by `set` or by why not. It ends with its input.
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
        let Ok(line) = line else { break };
        match by_name(&line) {
            None => print(&scheduler.status()),
            Some(policy) => match scheduler.set_policy(policy) {
                Ok(()) => println!("set"),
                Err(error) => println!("{error}"),
            },
        }
    }
    ExitCode::SUCCESS
}
