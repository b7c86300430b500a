//! The keeper's side.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::Command;

use rustix::io::FdFlags;

use crate::{READY, Role, Stage};

/// The number below which descriptors are input, output and messages.
const FIRST_FREE: RawFd = 3;

/// What a keeper was given.
#[derive(Debug)]
pub struct Duty {
    /// The files that tell what is to be undone, in the order in which they were given.
    pub files: Vec<OwnedFd>,
    /// The words that belong to them.
    pub words: Vec<OsString>,
    name: &'static CStr,
}

/// The duty, if this program was started as a keeper of this role. To be called first in `main`: it takes over the
/// descriptors that the arguments name. Does not return in a process that only had to start the second keeper, nor for
/// arguments that make no sense.
pub fn asked(role: &'static Role) -> Option<Duty> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|argument| argument != OsStr::new(role.argument)) {
        return None;
    }
    let given: Vec<OsString> = arguments.collect();
    let (stage, duty) = parse(role, &given).unwrap_or_else(|| std::process::exit(2));
    if stage == Stage::ToStartSecond {
        std::process::exit(if start_second(role, &given, duty).is_ok() { 0 } else { 1 });
    }
    for file in &duty.files {
        // They are this process's alone; what it may start has no use for them.
        let _ = rustix::io::fcntl_setfd(file, FdFlags::CLOEXEC);
    }
    Some(duty)
}

/// Which one, how many files, their numbers, words.
fn parse(role: &'static Role, given: &[OsString]) -> Option<(Stage, Duty)> {
    let stage =
        Stage::ALL.into_iter().find(|stage| given.first().is_some_and(|word| word == stage.word()))?;
    let count: usize = number(given.get(1)?)?;
    let numbers = given.get(2..2usize.checked_add(count)?)?;
    let numbers = numbers.iter().map(number).collect::<Option<Vec<RawFd>>>()?;
    let is_twice = |nth: usize| numbers[..nth].contains(&numbers[nth]);
    if (0..numbers.len()).any(is_twice) {
        return None;
    }
    let files = numbers.into_iter().map(inherited).collect::<Option<Vec<_>>>()?;
    let name = role.names[usize::from(stage != Stage::First)];
    Some((stage, Duty { files, words: given[2 + count..].to_vec(), name }))
}

fn number<T: std::str::FromStr>(word: &OsString) -> Option<T> {
    word.to_str()?.parse().ok()
}

fn inherited(number: RawFd) -> Option<OwnedFd> {
    if number < FIRST_FREE {
        return None;
    }
    // SAFETY: borrowed for the question whether it is open, which any number may be asked.
    rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) }).ok()?;
    // SAFETY: it is open, and it was left open across exec for this function to take: nothing else in this process,
    // which has just begun, knows of it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// With the same input, output, and files, which are still to be inherited. Waits for its end: where the first process
/// of a container takes no note of the end of orphans, it would stay a zombie.
fn start_second(role: &Role, given: &[OsString], duty: Duty) -> io::Result<()> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(role.argument).arg(Stage::Second.word()).args(&given[1..]);
    let mut second = command.spawn()?;
    be_a_keeper(duty.name);
    drop(duty);
    // The end of the output is the second keeper's end, and not this process's.
    let nothing = OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nothing)?;
    second.wait().map(drop)
}

/// A name that is not the program's (without it, the keeper works just as well), and no ear for polite signals.
fn be_a_keeper(name: &CStr) {
    let _ = rustix::thread::set_name(name);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: no handler is installed, so none can run in a wrong place.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

impl Duty {
    /// Says that this keeper is there, and returns when the program has ended. The keeper counts as there until its
    /// process ends.
    pub fn wait(&self) {
        be_a_keeper(self.name);
        // Says that it is there, which another program would not say. A program that has ended does not read it.
        let _ = writeln!(io::stdout(), "{READY} {}", std::process::id());
        // Nothing is ever written into the pipe.
        let _ = io::stdin().read_to_end(&mut Vec::new());
    }
}
