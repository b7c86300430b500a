//! Ctrl-C: the first one asks for an end, the second one is one. SIGUSR1 asks a recorder for what it keeps in memory.

use std::io;
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The exit status of what was stopped, as shells tell it of what Ctrl-C ended.
const STOPPED: u8 = 130;

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    // Orders nothing: whoever looks reads this flag alone.
    ASKED.store(true, Ordering::Relaxed);
}

static DUMP_ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_dump(_signal: libc::c_int) {
    DUMP_ASKED.store(true, Ordering::Relaxed);
}

/// From now on the first of each signal that ends a program is only noted.
pub fn listen() -> anyhow::Result<()> {
    // The second one has its usual effect.
    let flags = libc::SA_RESETHAND | libc::SA_RESTART;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        handle(signal, note, flags)
            .map_err(|error| anyhow::Error::new(error).context("cannot listen to Ctrl-C"))?;
    }
    Ok(())
}

/// From now on SIGUSR1 is a request to dump.
pub fn listen_to_dumps() -> anyhow::Result<()> {
    let listening = handle(libc::SIGUSR1, note_dump, libc::SA_RESTART);
    listening.map_err(|error| anyhow::Error::new(error).context("cannot listen to SIGUSR1"))
}

/// From now on a file that has become as large as the user's limit (`ulimit -f`) refuses what is written into it, as a full
/// disk does. Otherwise the kernel would end the program, in the middle of whatever it was doing.
///
/// And there are as many descriptors as the user may have, within reason: each program with probes takes two, and each
/// counter on each processor one.
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

/// More than any use of this program takes.
const MOST_DESCRIPTORS: u64 = 65_536;

static USUAL_DESCRIPTORS: OnceLock<Rlimit> = OnceLock::new();

/// Has a program that is about to take this one's place know those limits as they usually are.
pub fn restore_limits(command: &mut Command) {
    let usual = USUAL_DESCRIPTORS.get().copied();
    let restore = move || {
        // SAFETY: the usual action runs no code.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
        if let Some(usual) = usual {
            setrlimit(Resource::Nofile, usual)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec, the closure makes system calls and nothing else.
    unsafe { command.pre_exec(restore) };
}

/// Both handlers store an atomic flag and do nothing else.
fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) -> io::Result<()> {
    // SAFETY: all zeroes is an empty set, no flags and no handler.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = flags;
    // SAFETY: the handler stores an atomic flag, which is safe at any moment.
    match unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a dump was asked for since the last call.
pub fn take_dump_request() -> bool {
    DUMP_ASKED.swap(false, Ordering::Relaxed)
}

/// Whether an end was asked for.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// The same for what goes on unless it is told not to.
pub fn go_on() -> ControlFlow<()> {
    if asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The exit status of every subcommand that Ctrl-C ends early: 0 if it did all that it was asked for, else
/// 130, and it is said that the results are those so far. What has no end but Ctrl-C is done by then.
pub fn ended(is_done: bool) -> ExitCode {
    if is_done {
        return ExitCode::SUCCESS;
    }
    crate::failure::say("stopped before the end: these are the results so far");
    ExitCode::from(STOPPED)
}

/// The same of what was stopped before there was any result.
pub fn ended_without_results(what_is_missing: &str) -> ExitCode {
    crate::failure::say(&format!("stopped before the end: {what_is_missing}"));
    ExitCode::from(STOPPED)
}
