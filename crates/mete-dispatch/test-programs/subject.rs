//! What the tests of this crate observe. All of them end with their input, and after some minutes in any
//! case.
//!
//! * `dispatch POLICY REST DOMAIN…` dispatches the threads of domains, with a weight for the rest of the
//!   machine, prints `dispatching`, and for each line on its input what each domain has used, in
//!   microseconds, and what the dispatcher did. A line with a domain's place and a weight sets that first. At
//!   the end of its input it prints what was put back.
//! * `recover` puts back what dispatchers have left behind that were killed together with their watchers.
//! * `hogs THREADS` computes, and `hogs-and-sleeper THREADS` also sleeps as `sleeper` does.
//! * `sleeper` sleeps for some milliseconds and computes for 100 µs, again and again. For each line on its
//!   input it prints how late it was since the line before, in microseconds: the median, the 99th percentile,
//!   and of how many.
//! * `children` has children that end at once, one after the other, without a pause.
//! * `replaces-itself` has a second thread compute until it is in real time, which starts this program anew then, to
//!   compute in its place.
//! * `forks` starts processes that compute for a moment, one after the other.

#[path = "../../mete-ext/test-programs/instructions.rs"]
mod instructions;

use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use mete_dispatch::{Dispatcher, Setup};
use mete_kernel::Weight;
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
        ["dispatch", policy, rest, domains @ ..] => dispatch(policy, rest, domains),
        ["recover"] => say(&format!("{:?}", mete_sched::actuator::recover().classes)),
        ["hogs", threads] => hogs(threads.parse()?),
        ["hogs-and-sleeper", threads] => {
            (0..threads.parse()?).for_each(|_| drop(thread::spawn(|| compute(LAST))));
            sleeper()
        }
        ["sleeper"] => sleeper(),
        ["forks"] => forks(),
        ["replaces-itself"] => replace_itself(),
        ["replaced"] => {
            thread::spawn(|| each_line(|_| Ok(())).map_or_else(|_| exit(1), |()| exit(0)));
            compute(LAST);
            Ok(())
        }
        ["children"] => children(),
        ["burst"] => {
            compute(Duration::from_millis(3));
            Ok(())
        }
        other => Err(format!("unknown role {other:?}").into()),
    }
}

fn say(text: &str) -> Outcome {
    println!("{text}");
    Ok(io::stdout().flush()?)
}

/// Calls this for each line of the input.
fn each_line(mut act: impl FnMut(&str) -> Outcome) -> Outcome {
    io::stdin().lock().lines().try_for_each(|line| line.map_err(Into::into).and_then(|line| act(&line)))
}

fn dispatch(policy: &str, rest: &str, domains: &[&str]) -> Outcome {
    let policy = by_name(policy).ok_or("no such policy")?;
    let domains = domains.iter().map(|domain| SharedDomain::parse(domain.as_ref()));
    let domains = domains.collect::<Result<Vec<_>, _>>()?;
    let setup = Setup { rest: Weight::new(rest.parse()?).ok_or("no weight")?, ..Setup::default() };
    let dispatcher = Arc::new(Mutex::new(match Dispatcher::start(policy, domains, setup) {
        Ok(dispatcher) => Some(dispatcher),
        Err(error) => return say(&format!("refused: {error}")),
    }));
    // It begins with the first look.
    dispatcher.lock().expect("no panic").as_mut().map_or(Ok(()), Dispatcher::look)?;
    say("dispatching")?;
    let looked_at = Arc::clone(&dispatcher);
    thread::spawn(move || {
        loop {
            match looked_at.lock().expect("no panic").as_mut().map(Dispatcher::look) {
                Some(Ok(())) => {}
                Some(Err(error)) => eprintln!("{error}"),
                None => return,
            }
            sleep(Duration::from_millis(20));
        }
    });
    each_line(|line| {
        let mut dispatcher = dispatcher.lock().expect("no panic");
        let Some(dispatcher) = dispatcher.as_mut() else { return Ok(()) };
        if let Some((nth, weight)) = line.split_once(' ') {
            dispatcher.set_weight(nth.parse()?, Weight::new(weight.parse()?).ok_or("no weight")?);
        }
        let used: Vec<_> = dispatcher.used().iter().map(|used| (used.get() / 1000).to_string()).collect();
        say(&format!("{} clients {} {:?}", used.join(" "), dispatcher.clients(), dispatcher.counts()))
    })?;
    let dispatcher = dispatcher.lock().expect("no panic").take();
    dispatcher.map_or(Ok(()), |dispatcher| say(&format!("{:?}", dispatcher.finish())))
}

fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        instructions::compute();
    }
}

fn hogs(threads: usize) -> Outcome {
    for _ in 1..threads {
        thread::spawn(|| compute(LAST));
    }
    thread::spawn(|| compute(LAST));
    say("here")?;
    each_line(|_| Ok(()))
}

fn replace_itself() -> Outcome {
    thread::spawn(|| {
        // SAFETY: no memory is passed.
        while unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK != libc::SCHED_FIFO {
            compute(Duration::from_millis(1));
        }
        let program = std::env::current_exe().expect("this program has a path");
        panic!("{}", Command::new(program).arg("replaced").exec());
    });
    say("here")?;
    each_line(|_| Ok(()))
}

fn sleeper() -> Outcome {
    let late = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&late);
    thread::spawn(move || {
        loop {
            let due = Instant::now() + Duration::from_millis(5);
            sleep(Duration::from_millis(5));
            let was_late = due.elapsed().as_micros();
            compute(Duration::from_micros(100));
            noted.lock().expect("no panic").push(was_late);
        }
    });
    say("here")?;
    each_line(|_| {
        let mut late = std::mem::take(&mut *late.lock().expect("no panic"));
        late.sort_unstable();
        let part = |permille: usize| late.get(late.len() * permille / 1000).copied().unwrap_or_default();
        say(&format!("{} {} {}", part(500), part(990), late.len()))
    })
}

fn children() -> Outcome {
    thread::spawn(|| {
        loop {
            // SAFETY: the child does nothing but end.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: it only ends this process.
                unsafe { libc::_exit(0) };
            }
            // SAFETY: no status is asked for.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        }
    });
    say("here")?;
    each_line(|_| Ok(()))
}

fn forks() -> Outcome {
    thread::spawn(|| {
        loop {
            let child = Command::new("/proc/self/exe").arg("burst").spawn();
            let _ = child.and_then(|mut child| child.wait());
        }
    });
    say("here")?;
    each_line(|_| Ok(()))
}
