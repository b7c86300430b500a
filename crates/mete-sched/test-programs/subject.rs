//! The processes that the tests of this crate observe.
//!
//! * `pin PROCESSOR PID…` places processes, says `placed N`, and waits: a line with a processor on
//!   its input places them anew, the end of its input ends it in order.
//! * `wait` says `here` and waits. Each line on its input makes it start one thread and one child
//!   that waits, too, and say `here` again. It ends with its input.

use std::io::{self, BufRead, Write};
use std::process::{Child, Command, Stdio};

use mete_sched::actuator::{Affinity, watcher};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    watcher::take_over_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["pin", processor, pids @ ..] => pin(processor, pids),
        ["wait"] => wait(),
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
        let threads = affinity.place(2, &pids, processor.parse()?)?;
        Ok(say(&format!("placed {threads}"))?)
    };
    place(first)?;
    io::stdin().lock().lines().try_for_each(|line| place(&line?))?;
    Ok(say(&format!("{:?}", affinity.finish()?))?)
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
