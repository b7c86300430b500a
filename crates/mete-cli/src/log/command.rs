//! The command that is logged. It waits between fork and exec until it belongs to its domain, so that
//! everything it does is logged.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use mete_command::failure::NotRun;
use mete_command::status::{DONE, of_signal};
use mete_command::user::User;
use rustix::process::{Pid, Signal, kill_process};

/// How long a command may take to end after Ctrl-C, and then again after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process that waits to become the command. When it is dropped, it ends without having done anything.
pub struct Paused {
    program: OsString,
    pid: u32,
    go: PipeWriter,
    /// The thread that starts it: the standard library's spawn returns only after the exec.
    spawn: JoinHandle<io::Result<Child>>,
}

impl Paused {
    /// Starts the process; `None` if `command` is empty. With `stdout_aside`, its standard output goes to
    /// stderr. Its environment gets `variable`. When it goes on, it runs as `user`.
    pub fn start(
        command: &[OsString],
        stdout_aside: bool,
        variable: Option<(&str, String)>,
        user: Option<&User>,
    ) -> anyhow::Result<Option<Paused>> {
        let Some((program, arguments)) = command.split_first() else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(arguments);
        if stdout_aside {
            command.stdout(io::stderr());
        }
        command.envs(variable);
        mete_command::interrupt::restore_limits(&mut command);
        let paused = Paused::spawn(program.clone(), command, user);
        paused.map(Some).with_context(|| format!("cannot start {}", program.display()))
    }

    fn spawn(program: OsString, mut command: Command, user: Option<&User>) -> io::Result<Paused> {
        let (mut told_pid, tell_pid) = io::pipe()?;
        let (wait_to_go, go) = io::pipe()?;
        wait_before_exec(&mut command, tell_pid, wait_to_go, go.as_raw_fd());
        // After the wait: until it goes on, the child keeps the rights of this program, so that other users
        // cannot touch it.
        user.into_iter().for_each(|user| user.run(&mut command));
        let spawn = std::thread::spawn(move || {
            let spawned = command.spawn();
            // Closes the child's ends of the pipes, which the closure in the command holds. If there was no
            // fork, the read below ends by that.
            drop(command);
            spawned
        });
        let mut pid = [0; 4];
        match told_pid.read_exact(&mut pid) {
            Ok(()) => Ok(Paused { program, pid: u32::from_ne_bytes(pid), go, spawn }),
            // No child was forked; the error of the spawn says why.
            Err(error) => Err(joined(spawn).err().unwrap_or(error)),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The program's name without its directory.
    pub fn name(&self) -> &OsStr {
        Path::new(&self.program).file_name().unwrap_or_default()
    }

    /// Lets it become the command.
    pub fn resume(mut self) -> anyhow::Result<Running> {
        // Any byte will do: the child only waits for one.
        let resumed = self.go.write_all(&[1]).and_then(|()| joined(self.spawn));
        let child =
            resumed.map_err(NotRun).with_context(|| format!("cannot run {}", self.program.display()))?;
        Ok(Running { child, is_cut_short: false })
    }
}

fn joined(spawn: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    spawn.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it ended")))
}

/// Has the child wait between fork and exec.
fn wait_before_exec(command: &mut Command, mut tell_pid: PipeWriter, mut wait_to_go: PipeReader, go: RawFd) {
    // SAFETY: between fork and exec, the closure makes system calls and nothing else.
    unsafe { command.pre_exec(move || tell_and_wait(&mut tell_pid, &mut wait_to_go, go)) };
}

/// Runs in the child: it writes its process id into one pipe and waits for one byte from the other one. If
/// the parent ends without writing that byte, the pipe ends, and the child ends, too.
fn tell_and_wait(tell_pid: &mut PipeWriter, wait_to_go: &mut PipeReader, go: RawFd) -> io::Result<()> {
    // SAFETY: `go` is the child's own copy of a descriptor that only the parent uses. If it stayed open here,
    // the pipe would never end.
    unsafe { libc::close(go) };
    tell_pid.write_all(&std::process::id().to_ne_bytes())?;
    if wait_to_go.read_exact(&mut [0]).is_err() {
        // The parent has ended, or it has dropped the process: nothing is left that could report an error.
        // SAFETY: a process may end at any moment.
        unsafe { libc::_exit(DONE.into()) }
    }
    Ok(())
}

/// The command while it runs. When it is dropped, it is ended.
pub struct Running {
    child: Child,
    /// It was ended because the time that was asked for was up.
    is_cut_short: bool,
}

impl Running {
    /// Whether it has ended.
    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.ended()?.is_some())
    }

    /// Its status, if it has ended.
    fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        // The child keeps its status, so this may be asked again after its end.
        self.child.try_wait().context("cannot wait for the command")
    }

    /// Ends it, if it has not ended. After Ctrl-C, which the terminal has also sent to the command, it first
    /// gets some time to end by itself. Then it gets SIGTERM, and at last SIGKILL. `meanwhile` is called
    /// while this waits.
    pub fn end(&mut self, mut meanwhile: impl FnMut()) -> anyhow::Result<()> {
        if mete_command::interrupt::asked() && self.ends_within(&mut meanwhile)? {
            return Ok(());
        }
        self.is_cut_short = !mete_command::interrupt::asked() && !self.has_ended()?;
        self.signal(Signal::TERM);
        if !self.ends_within(&mut meanwhile)? {
            self.signal(Signal::KILL);
            self.ends_within(&mut meanwhile)?;
        }
        Ok(())
    }

    fn ends_within(&mut self, meanwhile: &mut impl FnMut()) -> anyhow::Result<bool> {
        let begin = Instant::now();
        while !self.has_ended()? && begin.elapsed() < PATIENCE {
            meanwhile();
            std::thread::sleep(LOOK_EVERY);
        }
        self.has_ended()
    }

    fn signal(&mut self, signal: Signal) {
        // It has not been waited for, so no other process can have its number. It may have ended, which is no
        // error.
        if let (Ok(None), Some(pid)) = (self.ended(), Pid::from_raw(self.child.id() as i32)) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Its exit status, as shells report it. If it was ended because its time was up, this is no failure.
    pub fn status(mut self) -> anyhow::Result<ExitCode> {
        let status = self.ended()?.filter(|_| !self.is_cut_short);
        Ok(ExitCode::from(status.map_or(DONE, told_by_shells)))
    }
}

/// A command's status, as shells report it.
fn told_by_shells(status: ExitStatus) -> u8 {
    match status.code() {
        Some(code) => code as u8,
        None => of_signal(status.signal().unwrap_or_default() as u8),
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.end(|| ());
    }
}
