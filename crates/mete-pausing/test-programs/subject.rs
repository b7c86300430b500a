//! What the tests of this crate observe. All of them end with their input, and after some minutes in any case.
//!
//! * `dispatch POLICY DOMAIN…` has the processes of domains run in turn, prints `dispatching`, and for each line on its
//!   input what each domain has used, in microseconds, and what the dispatcher did. A line with a domain's place and a
//!   weight sets that first. At the end of its input it prints what was put back.
//! * `recover` has those go on that were left paused by dispatchers that were killed together with their watchers.
//! * `hog` computes, and `wait` waits for a line.

use std::io::{self, BufRead, Write};
use std::process::exit;
use std::sync::mpsc::channel;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use mete_kernel::Weight;
use mete_pausing::{PausingDispatcher, Setup};
use mete_policy::by_name;
use mete_sched::domains::SharedDomain;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// When every one of them ends.
const LAST: Duration = Duration::from_secs(300);

fn main() -> Outcome {
    mete_sched::actuator::watcher::take_over_if_asked();
    thread::spawn(|| {
        sleep(LAST);
        exit(3)
    });
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["dispatch", policy, domains @ ..] => dispatch(policy, domains),
        ["recover"] => say(&format!("{:?}", mete_sched::actuator::recover().pauses)),
        ["wait"] => {
            io::stdin().lock().lines().next();
            Ok(())
        }
        ["hog"] => {
            let begin = Instant::now();
            while begin.elapsed() < LAST {
                (0..100_000_u64).for_each(|number| {
                    std::hint::black_box(number);
                });
            }
            Ok(())
        }
        other => Err(format!("unknown role {other:?}").into()),
    }
}

fn say(text: &str) -> Outcome {
    println!("{text}");
    Ok(io::stdout().flush()?)
}

fn dispatch(policy: &str, domains: &[&str]) -> Outcome {
    let domains = domains.iter().map(|domain| SharedDomain::parse(domain.as_ref()));
    let domains = domains.collect::<Result<Vec<_>, _>>()?;
    let policy = by_name(policy).ok_or("no such policy")?;
    let mut dispatcher = match PausingDispatcher::start(policy, domains, Setup::default()) {
        Ok(dispatcher) => dispatcher,
        Err(error) => return say(&format!("refused: {error}")),
    };
    say("dispatching")?;
    let (tell, told) = channel();
    thread::spawn(move || {
        io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
    });
    loop {
        match told.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => {
                if let Some((nth, weight)) = line.split_once(' ') {
                    dispatcher.set_weight(nth.parse()?, Weight::new(weight.parse()?).ok_or("no weight")?);
                }
                let used: Vec<_> =
                    dispatcher.used().iter().map(|used| (used.get() / 1000).to_string()).collect();
                say(&format!(
                    "{} {:?} {}",
                    used.join(","),
                    dispatcher.counts(),
                    dispatcher.left_out().all()
                ))?;
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
        }
        dispatcher.look()?;
    }
    say(&format!("{:?}", dispatcher.finish()))
}
