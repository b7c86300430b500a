//! The keeper's side.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, FdFlags};
use rustix::time::Timespec;

use crate::{KeeperStage, READY, Role};

/// Descriptors below this number are input, output and messages.
const FIRST_FREE: RawFd = 3;

/// What a keeper was given to do.
#[derive(Debug)]
pub struct Duty {
    /// The files that say what must be undone, in the order in which they were given.
    pub files: Vec<OwnedFd>,
    /// The words that belong to the files.
    pub words: Vec<OsString>,
    name: &'static CStr,
}

/// The duty, if this program was started as a keeper of this role. `main` must call this first, because it
/// takes over the descriptors that the arguments name. It does not return in a process that only has to start
/// the second keeper, nor if the arguments make no sense.
pub fn asked(role: &'static Role) -> Option<Duty> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|argument| argument != OsStr::new(role.argument)) {
        return None;
    }
    let given: Vec<OsString> = arguments.collect();
    let (stage, duty) = parse(role, &given).unwrap_or_else(|| std::process::exit(2));
    if stage == KeeperStage::ToStartSecond {
        std::process::exit(if start_second(role, &given, duty).is_ok() { 0 } else { 1 });
    }
    for file in &duty.files {
        // The files belong to this process alone. A program that it may start has no use for them.
        let _ = rustix::io::fcntl_setfd(file, FdFlags::CLOEXEC);
    }
    Some(duty)
}

/// Reads the arguments: the stage, the number of files, the files' descriptors, and the words.
fn parse(role: &'static Role, given: &[OsString]) -> Option<(KeeperStage, Duty)> {
    let stage =
        KeeperStage::ALL.into_iter().find(|stage| given.first().is_some_and(|word| word == stage.word()))?;
    let count: usize = number(given.get(1)?)?;
    let numbers = given.get(2..2usize.checked_add(count)?)?;
    let numbers = numbers.iter().map(number).collect::<Option<Vec<RawFd>>>()?;
    // Two owners of one descriptor would each close it.
    if (0..numbers.len()).any(|nth| numbers[..nth].contains(&numbers[nth])) {
        return None;
    }
    let files = numbers.into_iter().map(inherited).collect::<Option<Vec<_>>>()?;
    let name = role.names[usize::from(stage != KeeperStage::First)];
    Some((stage, Duty { files, words: given[2 + count..].to_vec(), name }))
}

fn number<T: std::str::FromStr>(word: &OsString) -> Option<T> {
    word.to_str()?.parse().ok()
}

fn inherited(number: RawFd) -> Option<OwnedFd> {
    if number < FIRST_FREE {
        return None;
    }
    // SAFETY: the descriptor is borrowed only to ask whether it is open. Any number may be asked for that.
    rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) }).ok()?;
    // SAFETY: the descriptor is open, and it was left open across exec for this function to take. Nothing
    // else in this process, which has just begun, knows of it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Starts the second keeper with the same input, output, and files, all of which it inherits. Then waits for
/// its end: if the first process of a container does not wait for orphans, the second keeper would stay a
/// zombie.
fn start_second(role: &Role, given: &[OsString], duty: Duty) -> io::Result<()> {
    let mut command = crate::this_program();
    command.arg(role.argument).arg(KeeperStage::Second.word()).args(&given[1..]);
    let mut second = command.spawn()?;
    be_a_keeper(duty.name);
    // This process must not hold the files, or a lock on them, beyond the end of the second keeper.
    drop(duty);
    // The end of the output must be the second keeper's end, and not this process's.
    let nothing = OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nothing)?;
    second.wait().map(drop)
}

/// Takes a name that is not the program's, and ignores polite signals. An error about the name is of no
/// consequence: the keeper works just as well.
fn be_a_keeper(name: &CStr) {
    let _ = rustix::thread::set_name(name);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: this installs no handler, so no handler can run at a wrong moment.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

impl Duty {
    /// Reports that this keeper is there, and returns when the program has ended. For the program, the keeper
    /// is there until its process ends.
    pub fn wait(&self) {
        self.report();
        // Nothing is ever written into the pipe, so this returns at its end.
        let _ = io::stdin().read_to_end(&mut Vec::new());
    }

    /// The same, and meanwhile looks at something in this period.
    pub fn wait_and_look(&self, period: Duration, mut look: impl FnMut()) {
        self.report();
        let period = Timespec::try_from(period).ok();
        let input = io::stdin();
        // What is there to be read is the end of the pipe. An error keeps it from looking, and not from
        // waiting.
        while let Ok(0) | Err(Errno::INTR) = poll(&mut [PollFd::new(&input, PollFlags::IN)], period.as_ref())
        {
            look();
        }
        let _ = io::stdin().read_to_end(&mut Vec::new());
    }

    fn report(&self) {
        be_a_keeper(self.name);
        // Another program, started by mistake, would not say this. If the program has ended, it does not read
        // this, and an error is of no consequence.
        let _ = writeln!(io::stdout(), "{READY} {}", std::process::id());
    }
}
