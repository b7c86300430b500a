//! Signals, and the limits of the process. The first SIGINT (Ctrl-C), SIGTERM or SIGHUP asks the program to
//! end; a second one of the same kind ends it. One that was ignored when the program began stays ignored:
//! `nohup` ignores SIGHUP for the program that it starts, and a script's shell SIGINT for what it starts in
//! the background. SIGUSR1 asks a recorder to write what it keeps in memory.

use std::io;
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::status::{DONE, STOPPED};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    // Relaxed: the flag orders no other memory, because its readers read nothing else that a handler writes.
    ASKED.store(true, Ordering::Relaxed);
}

static DUMP_ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_dump(_signal: libc::c_int) {
    DUMP_ASKED.store(true, Ordering::Relaxed);
}

/// From now on, the first SIGINT, the first SIGTERM and the first SIGHUP are only noted. A signal that is
/// ignored stays ignored.
pub fn listen() -> anyhow::Result<()> {
    // SA_RESETHAND: the second one has its usual effect.
    let flags = libc::SA_RESETHAND | libc::SA_RESTART;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        is_ignored(signal)
            .and_then(|is_ignored| if is_ignored { Ok(()) } else { handle(signal, note, flags) })
            .map_err(|error| anyhow::Error::new(error).context("cannot listen to Ctrl-C"))?;
    }
    Ok(())
}

/// From now on, SIGUSR1 is a request to dump.
pub fn listen_to_dumps() -> anyhow::Result<()> {
    let listening = handle(libc::SIGUSR1, note_dump, libc::SA_RESTART);
    listening.map_err(|error| anyhow::Error::new(error).context("cannot listen to SIGUSR1"))
}

/// Sets two limits of this process.
///
/// A write into a file that is as large as the user's limit (`ulimit -f`) fails from now on, as on a full
/// disk. Otherwise the kernel would end the program in the middle of its work.
///
/// The process may open as many files as the user's hard limit allows, up to 65,536: each program with
/// probes takes two descriptors, and each counter takes one on each processor.
pub fn settle_limits() {
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let usual = getrlimit(Resource::Nofile);
    let more = usual.maximum.unwrap_or(MOST_DESCRIPTORS).min(MOST_DESCRIPTORS);
    if usual.current.is_some_and(|current| current < more)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(more), ..usual }).is_ok()
    {
        let _ = USUAL_DESCRIPTORS.set(usual);
    }
}

/// More descriptors than any use of this program takes.
const MOST_DESCRIPTORS: u64 = 65_536;

static USUAL_DESCRIPTORS: OnceLock<Rlimit> = OnceLock::new();

/// Gives a command that this program starts the limit of descriptors that this program was started with, and
/// the usual effect of a file that grows beyond its limit.
pub fn restore_limits(command: &mut Command) {
    let usual = USUAL_DESCRIPTORS.get().copied();
    // SAFETY: between fork and exec, the closure makes system calls and nothing else.
    unsafe { command.pre_exec(move || take_usual_limits(usual)) };
}

/// Undoes [`settle_limits`] in this process.
fn take_usual_limits(descriptors: Option<Rlimit>) -> io::Result<()> {
    // SAFETY: the usual action runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
    if let Some(usual) = descriptors {
        setrlimit(Resource::Nofile, usual)?;
    }
    Ok(())
}

/// Whether the process ignores a signal. What the program that started this one ignores is ignored here, too.
fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
    // SAFETY: all zeroes is an empty set, no flags and no handler.
    let mut present: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action the call only writes the present one, into a local that lives longer.
    match unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut present) } {
        0 => Ok(present.sa_sigaction == libc::SIG_IGN),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets a handler, which stores an atomic flag and does nothing else.
fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) -> io::Result<()> {
    // SAFETY: all zeroes is an empty set, no flags and no handler.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = flags;
    // SAFETY: the handler only stores an atomic flag, which is safe at any moment.
    match unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a dump was asked for since the last call.
pub fn take_dump_request() -> bool {
    DUMP_ASKED.swap(false, Ordering::Relaxed)
}

/// Whether a signal has asked for the end.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Whether to go on, for loops that ask by a `ControlFlow`.
pub fn go_on() -> ControlFlow<()> {
    if asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The exit status of a subcommand that Ctrl-C can end early: 0 if it has done everything that was asked for.
/// Otherwise it says that the results are those so far, and returns 130. A run whose only end is Ctrl-C is
/// done when it comes.
pub fn ended(is_done: bool) -> ExitCode {
    if is_done {
        return ExitCode::from(DONE);
    }
    crate::failure::say("stopped before the end: these are the results so far");
    ExitCode::from(STOPPED)
}

/// The exit status of a subcommand that was stopped before it had any result.
pub fn ended_without_results(what_is_missing: &str) -> ExitCode {
    crate::failure::say(&format!("stopped before the end: {what_is_missing}"));
    ExitCode::from(STOPPED)
}
