//! The processes that the tests of this crate observe.
//!
//! * `pin PROCESSOR PID…` places processes, prints `placed N`, and waits. A line with a processor on its
//!   input makes it place them anew. Any other line makes it panic. At the end of its input, it ends as it
//!   should.
//! * `weigh WEIGHT [limit=PROCESSORS] GROUP…` gives control groups this weight and limit, prints `weighed`, and waits. It ends with its
//!   input as it should, and prints what was put back.
//! * `recover` puts back what schedulers have left behind that were killed together with their watchers.
//! * `wait` prints `here` and waits. Each line on its input makes it start one thread and one child, which
//!   wait, too, and print `here` again. It ends with its input.
//! * `ask SOCKET` prints `here` and sends requests to the driver there without end. It ends with its input.
//! * `schedule KERNEL DOMAIN…` runs the scheduler with the affinity policy, with the kernel component
//!   (`kernel`) or without (`alone`), and prints `here`. For each line on its input it prints a report, and
//!   at the end of its input what was put back.

use std::io::{self, BufRead, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use mete_kernel::Weight;
use mete_log::DomainId;
use mete_sched::actuator::{Affinity, Weights, recover, watcher};
use mete_sched::domains::SharedDomain;
use mete_sched::{Notice, Report, Scheduler, Settings};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    watcher::take_over_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["pin", processor, pids @ ..] => pin(processor, pids),
        ["weigh", weight, groups @ ..] => weigh(weight.parse()?, groups),
        ["recover"] => Ok(say(&format!("{:?}", recover()))?),
        ["wait"] => wait(),
        ["ask", socket] => ask(socket),
        ["schedule", kernel, domains @ ..] => schedule(*kernel == "kernel", domains),
        other => Err(format!("unknown role {other:?}").into()),
    }
}

fn say(text: &str) -> io::Result<()> {
    println!("{text}");
    io::stdout().flush()
}

fn pin(first: &str, pids: &[&str]) -> Outcome {
    let pids = pids.iter().map(|pid| pid.parse()).collect::<Result<Vec<u32>, _>>()?;
    let mut affinity = Affinity::start()?;
    let mut place = |processor: &str| -> Outcome {
        let processor = processor.parse().expect("a processor, or the test wants a panic");
        let threads = affinity.place(DomainId::new(2), &pids, processor)?;
        Ok(say(&format!("placed {threads}"))?)
    };
    place(first)?;
    io::stdin().lock().lines().try_for_each(|line| place(&line?))?;
    Ok(say(&format!("{:?}", affinity.finish()))?)
}

fn weigh(weight: u32, groups: &[&str]) -> Outcome {
    let weight = Weight::new(weight).ok_or("no weight")?;
    let mut weights = Weights::start()?;
    let limit = groups.first().and_then(|first| first.strip_prefix("limit="));
    let limit = limit.map(|limit| SharedDomain::limit_of(limit.as_ref())).transpose()?;
    for group in &groups[usize::from(limit.is_some())..] {
        weights.set(group.as_ref(), weight)?;
        limit.map_or(Ok(()), |limit| weights.set_limit(group.as_ref(), limit))?;
    }
    say("weighed")?;
    io::stdin().lock().lines().try_for_each(|line| line.map(drop))?;
    Ok(say(&format!("{:?}", weights.finish()))?)
}

fn wait() -> Outcome {
    say("here")?;
    let mut children = Vec::new();
    for line in io::stdin().lock().lines() {
        line?;
        std::thread::spawn(std::thread::park);
        children.push(waiting_child()?);
        say("here")?;
    }
    for mut child in children {
        drop(child.stdin.take());
        child.wait()?;
    }
    Ok(())
}

fn waiting_child() -> Result<Child, Box<dyn std::error::Error>> {
    let mut child =
        Command::new("/proc/self/exe").arg("wait").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut answer = String::new();
    io::BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut answer)?;
    Ok(child)
}

/// Ends this process with its input.
fn end_with_input() {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
}

fn ask(socket: &str) -> Outcome {
    // A session of its own, like the parts of the demo, and for the same reason.
    let _ = rustix::process::setsid();
    let mut server = UnixStream::connect(socket)?;
    end_with_input();
    say("here")?;
    let mut byte = [1];
    loop {
        server.write_all(&byte)?;
        server.read_exact(&mut byte)?;
    }
}

fn schedule(has_kernel: bool, domains: &[&str]) -> Outcome {
    let policy =
        mete_policy::affinity::Settings { confirm_periods: 2, dwell_periods: 2, ..Default::default() };
    let mut settings = Settings { policy: Some(policy), needs_kernel: has_kernel, ..Settings::default() };
    if !has_kernel {
        settings.kernel.clear();
    }
    let domains = domains.iter().map(|domain| domain.parse()).collect::<Result<_, _>>()?;
    let mut scheduler = Scheduler::start(settings, domains)?;
    say("here")?;
    let (wanted, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in io::stdin().lock().lines() {
                wanted.fetch_add(1, Ordering::Relaxed);
            }
            stop.store(true, Ordering::Relaxed);
        });
        scheduler.run(&stop, |scheduler| tell(scheduler, &wanted));
    });
    Ok(say(&format!("{:?}", scheduler.finish().restored))?)
}

fn tell(scheduler: &mut Scheduler, wanted: &AtomicU32) {
    for notice in scheduler.notices().filter(|notice| !matches!(notice, Notice::Component(_))) {
        eprintln!("{notice:?}");
    }
    if wanted.load(Ordering::Relaxed) > 0 {
        wanted.fetch_sub(1, Ordering::Relaxed);
        let report = serde_json::to_string(&Report::of(scheduler));
        // An error means that the client is gone.
        let _ = report.map(|report| say(&report));
    }
}
