//! The watcher: a process that outlives the scheduler by as much as it takes to put processor masks
//! back.
//!
//! It is this program again, started with [`ARGUMENT`]: the program's `main` calls
//! [`take_over_if_asked`] first. It learns of every change before it is made, through a pipe. When
//! the pipe ends, because the scheduler closed it, panicked or was killed, it undoes the changes and
//! ends. It has a session of its own, so Ctrl-C does not reach it, and a name of its own, so
//! `killall -9` of the scheduler's name does not either; it ignores polite signals, because its pipe
//! tells it when to end. Killing it and the scheduler at the same moment defeats it.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::ActuatorError;
use super::ledger::{Ledger, Record, Restored};

/// The one argument that makes this program the watcher.
pub const ARGUMENT: &str = "--restore-processor-masks";
/// The watcher's first word.
const READY: &str = "watching";
/// How long the watcher may take to listen, and to put everything back.
const PATIENCE: Duration = Duration::from_secs(10);

/// Becomes the watcher, and does not return, if this program was started as one. To be called first
/// in `main` of a program that uses [`Affinity`](super::Affinity).
pub fn take_over_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    let is_asked = arguments.next().is_some_and(|argument| argument == OsStr::new(ARGUMENT));
    if is_asked && arguments.next().is_none() {
        watch();
        std::process::exit(0);
    }
}

/// This program as the watcher, also after its file was replaced.
pub fn this_program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(ARGUMENT);
    command
}

/// The watcher's life.
fn watch() {
    // A name that is not the scheduler's; without it, the watcher works just as well.
    let _ = rustix::thread::set_name(c"mete-restore");
    ignore_polite_signals();
    // It logs nothing, so no scheduler shall find probes in it: least of all the one that started it,
    // which would take it for something to read.
    mete_probe::withdraw();
    // Says that it listens, which some other program would not say.
    let _ = writeln!(io::stdout(), "{READY}");
    let restored = read_ledger(&mut io::stdin().lock()).restore();
    let Restored { restored, ended, left_alone, failed } = restored;
    // Nobody reads it if the scheduler was killed.
    let _ = writeln!(io::stdout(), "{restored} {ended} {left_alone} {failed}");
}

fn ignore_polite_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: no handler is installed, so none can run in a wrong place.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// All records until the pipe ends; an incomplete one at the end was not acted upon.
fn read_ledger(pipe: &mut impl Read) -> Ledger {
    let mut ledger = Ledger::default();
    let mut bytes = [0; Record::BYTES];
    while pipe.read_exact(&mut bytes).is_ok() {
        ledger.note(Record::from_bytes(&bytes));
    }
    ledger
}

/// The scheduler's side: the watcher while it watches.
#[derive(Debug)]
pub(super) struct Watcher {
    child: Child,
    /// `None` once it was let go.
    pipe: Option<ChildStdin>,
    answer: Option<BufReader<ChildStdout>>,
}

impl Watcher {
    pub fn start(mut command: Command) -> Result<Watcher, ActuatorError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/");
        // SAFETY: setsid is one system call and touches no memory of the parent's.
        unsafe { command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?)) };
        let failed = |source| ActuatorError::NoWatcher { source };
        let mut child = command.spawn().map_err(failed)?;
        let (pipe, answer) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        let mut watcher = Watcher { child, pipe, answer };
        match watcher.never_block().map_err(failed).and_then(|()| watcher.hear()) {
            Ok(word) if word == READY => Ok(watcher),
            other => Err(watcher.give_up(other)),
        }
    }

    /// Whatever was started, it is no watcher.
    fn give_up(mut self, heard: Result<String, ActuatorError>) -> ActuatorError {
        // Both fail only if it has ended already.
        let _ = self.child.kill().and_then(|()| self.child.wait());
        heard.map_or_else(
            |error| error,
            |word| {
                let text = format!("the program that was started said {word:?} instead of {READY:?}");
                ActuatorError::NoWatcher { source: io::Error::other(text) }
            },
        )
    }

    /// A watcher that is stopped must not stop the scheduler.
    fn never_block(&self) -> io::Result<()> {
        if let Some(pipe) = &self.pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(())
    }

    /// Its next line; it writes whole lines.
    fn hear(&mut self) -> Result<String, ActuatorError> {
        let gone = |source| ActuatorError::WatcherGone { source };
        let answer = self.answer.as_mut().ok_or_else(|| gone(io::ErrorKind::UnexpectedEof.into()))?;
        if answer.buffer().is_empty() {
            wait_for(PollFd::new(answer.get_ref(), PollFlags::IN))?;
        }
        let mut line = String::new();
        answer.read_line(&mut line).map_err(gone)?;
        Ok(line.trim_end().to_owned())
    }

    /// Whether it was not let go yet.
    pub fn is_watching(&self) -> bool {
        self.pipe.is_some()
    }

    /// Tells of a change. Once this returns, the change will be undone, whatever happens to this
    /// process: the pipe keeps what was written.
    pub fn tell(&mut self, record: Record) -> Result<(), ActuatorError> {
        let closed = || ActuatorError::WatcherGone { source: io::ErrorKind::BrokenPipe.into() };
        let pipe = self.pipe.as_mut().ok_or_else(closed)?;
        loop {
            match pipe.write_all(&record.to_bytes()) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_for(PollFd::new(pipe, PollFlags::OUT))?;
                }
                Err(source) => return Err(ActuatorError::WatcherGone { source }),
            }
        }
    }

    /// Lets it put everything back, and hears how that went.
    pub fn finish(&mut self) -> Result<Restored, ActuatorError> {
        drop(self.pipe.take());
        let answer = self.hear()?;
        let gone = |source| ActuatorError::WatcherGone { source };
        self.child.wait().map_err(gone)?;
        parse_answer(&answer).ok_or_else(|| gone(io::ErrorKind::UnexpectedEof.into()))
    }
}

fn wait_for(end: PollFd<'_>) -> Result<(), ActuatorError> {
    let limit = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    loop {
        match poll(&mut [end.clone()], Some(&limit)) {
            Ok(0) => return Err(ActuatorError::WatcherSilent { limit: PATIENCE }),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(ActuatorError::WatcherGone { source: error.into() }),
        }
    }
}

fn parse_answer(text: &str) -> Option<Restored> {
    let mut numbers = text.split_ascii_whitespace().map(|number| number.parse().ok());
    let mut next = || numbers.next().flatten();
    Some(Restored { restored: next()?, ended: next()?, left_alone: next()?, failed: next()? })
}
