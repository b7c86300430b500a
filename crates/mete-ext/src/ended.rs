//! Why the kernel has ended a scheduler.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::Duration;
use std::{fmt, fs, io};

use mete_kernel::{SharedNumbers, mirror};

use crate::ExtError;
use crate::outside::CLIENTS;
use crate::outside::DOMAINS;
use crate::skeleton::outside::types;

/// What `enum scx_exit_kind` calls a fault begins here; below, a person or a program has asked for it.
const FIRST_FAULT: u32 = 1024;

/// Why the kernel has ended the scheduler. It rules all tasks itself again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// It was a fault, and not asked for (SysRq-S, another program).
    pub is_fault: bool,
    /// The kernel's word for it, such as *runnable task stall*.
    pub reason: String,
    /// What exactly happened, such as which task waited for how long; empty if the kernel says no more.
    pub message: String,
    /// What the kernel printed of all processors and all tasks that waited.
    pub dump: String,
}

// Both schedulers have the same.
mirror!(Words of types::ending {
    kind: AtomicU32,
    reason: [AtomicU8; 128],
    message: [AtomicU8; 256],
    dump: [AtomicU8; 32768],
});

/// Where the kernel's side says why the kernel has ended the scheduler (`bpf/ending.bpf.h`).
pub(crate) struct Ending(SharedNumbers<Words>);

impl Ending {
    pub fn of(map: impl AsFd) -> io::Result<Ending> {
        Ok(Ending(SharedNumbers::of(map, 1)?))
    }

    fn words(&self) -> &Words {
        &self.0.all()[0]
    }

    /// Whether the kernel has ended the scheduler.
    pub fn is_there(&self) -> bool {
        // Acquire: the words were written before.
        self.words().kind.load(Ordering::Acquire) != 0
    }

    /// Why, if it has.
    pub fn read(&self) -> Option<Ended> {
        let words = self.words();
        self.is_there().then(|| Ended {
            is_fault: words.kind.load(Ordering::Relaxed) >= FIRST_FAULT,
            reason: sentence(&words.reason),
            message: sentence(&words.message),
            dump: sentence(&words.dump),
        })
    }
}

/// A task that the scheduler has let wait for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starved {
    /// The first fifteen bytes of its name.
    pub name: String,
    /// Its number.
    pub task: u32,
    /// For how long it had waited.
    pub waited: Duration,
    /// Its control group, by which the policy has it in a queue; `None` if it has ended.
    pub group: Option<String>,
    /// The processors that it may run on, as the kernel lists them; `None` if it has ended.
    pub processors: Option<String>,
}

/// That something got no number (`bpf/numbers.bpf.h`), as the kernel says it: a cgroup, or a task.
const NO_NUMBER_FOR_DOMAIN: &str = "cgroup_init() failed (-7)";
const NO_NUMBER_FOR_CLIENT: &str = "init_task() failed (-7)";

impl Ended {
    /// The task that the kernel names, if it is why.
    #[must_use]
    pub fn starved(&self) -> Option<Starved> {
        let (name, task, waited) = named(&self.message)?;
        let read = |file: &str| fs::read_to_string(format!("/proc/{task}/{file}")).ok();
        let group =
            read("cgroup").and_then(|text| Some(text.lines().last()?.splitn(3, ':').nth(2)?.to_owned()));
        let processors = read("status").and_then(|text| {
            let listed = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            listed.map(|listed| listed.trim().to_owned())
        });
        Some(Starved { name: name.to_owned(), task, waited, group, processors })
    }

    /// For a scheduler that has just been started: the kernel says only by this that it did not accept it.
    pub(crate) fn check(ended: Option<Ended>) -> Result<(), ExtError> {
        let Some(ended) = ended else { return Ok(()) };
        let hint = if ended.message.contains(NO_NUMBER_FOR_DOMAIN) {
            format!(
                "; are there more than {} control groups? It serves no more, those included that are about to go",
                DOMAINS - 1
            )
        } else if ended.message.contains(NO_NUMBER_FOR_CLIENT) {
            format!("; are there more than {CLIENTS} threads? It serves no more")
        } else {
            String::new()
        };
        Err(ExtError::EndedAtOnce { verdict: ended.verdict() + &hint })
    }

    /// Why, in one sentence, without the kernel's report.
    #[must_use]
    pub fn verdict(&self) -> String {
        let Ended { reason, message, .. } = self;
        match self.starved() {
            Some(starved) => format!("{reason}: {starved}"),
            None if message.is_empty() => reason.clone(),
            None => format!("{reason}: {message}"),
        }
    }
}

/// Whose task, for how long, in which queue.
impl fmt::Display for Starved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Starved { name, task, waited, group, processors } = self;
        write!(f, "the task {name} ({task})")?;
        if let Some(group) = group {
            write!(f, " in the queue of control group {group}")?;
        }
        if let Some(processors) = processors {
            write!(f, ", which may run on processors {processors},")?;
        }
        write!(f, " has waited for {:.1} s", waited.as_secs_f64())
    }
}

/// What the kernel says of a task that starves: `name[number] failed to run for 20.123s`.
fn named(message: &str) -> Option<(&str, u32, Duration)> {
    let (task, waited) = message.split_once(" failed to run for ")?;
    let (name, number) = task.strip_suffix(']')?.rsplit_once('[')?;
    let seconds = waited.trim_end_matches('s').parse().ok()?;
    Some((name, number.parse().ok()?, Duration::try_from_secs_f64(seconds).ok()?))
}

/// In the kernel's words, with what it printed.
impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ended { reason, message, dump, .. } = self;
        f.write_str(reason)?;
        if !message.is_empty() {
            write!(f, ": {message}")?;
        }
        if !dump.is_empty() {
            write!(f, "\nThe kernel's report:\n{dump}")?;
        }
        Ok(())
    }
}

/// The text in front of the first zero.
fn sentence(letters: &[AtomicU8]) -> String {
    let bytes = letters.iter().map(|letter| letter.load(Ordering::Relaxed));
    String::from_utf8_lossy(&bytes.take_while(|&byte| byte != 0).collect::<Vec<u8>>()).into_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::named;

    #[test]
    fn new_1_the_kernels_words_say_which_task_starved() {
        assert_eq!(
            named("sh[123] failed to run for 20.123s"),
            Some(("sh", 123, Duration::from_millis(20_123)))
        );
        assert_eq!(
            named("a [b]] c[7] failed to run for 5.000s"),
            Some(("a [b]] c", 7, Duration::from_secs(5)))
        );
        for other in [
            "",
            "sh failed to run for 1s",
            "sh[x] failed to run for 1s",
            "sh[1] failed",
            "sh[1] failed to run for -1s",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
