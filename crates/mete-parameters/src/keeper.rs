//! The keeper: a process that outlives the program by as much as it takes to unmount its tree.
//!
//! It is the program again, started with [`ARGUMENT`]: the program's `main` calls [`take_over_if_asked`] first. It
//! knows the process's number, by which the tree goes in the mount table, so it is there before the mount is. When its
//! pipe ends, because the program closed it, panicked or was killed, it takes away what is mounted and ends. It has a
//! session of its own, so Ctrl-C does not reach it, and a name of its own, so `killall -9` of the program's name does
//! not either; it ignores polite signals, because its pipe tells it when to end. Killing it and the program at the
//! same moment defeats it; what is left then is taken away by the next one at the same place.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::directory::{self, Directory};
use crate::error::MountError;
use crate::mounts;

/// The first argument that makes the program the keeper. The process's number and directories to remove follow.
pub const ARGUMENT: &str = "--take-parameters-away";
/// The keeper's first word.
const READY: &str = "keeping";

/// Becomes the keeper, and does not return, if this program was started as one; `prepare` is called then.
pub fn take_over_if_asked(prepare: impl FnOnce()) {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|argument| argument != OsStr::new(ARGUMENT)) {
        return;
    }
    let pid = arguments.next().and_then(|pid| pid.to_str()?.parse().ok());
    prepare();
    if let Some(pid) = pid {
        keep(pid, &arguments.map(PathBuf::from).collect::<Vec<_>>());
    }
    std::process::exit(0);
}

/// This program, also after its file was replaced.
pub fn this_program() -> Command {
    Command::new("/proc/self/exe")
}

/// The keeper's life.
fn keep(pid: u32, made: &[PathBuf]) {
    // A name that is not the program's; without it, the keeper works just as well.
    let _ = rustix::thread::set_name(c"mete-keeper");
    ignore_polite_signals();
    // Says that it is there, which some other program would not say.
    let _ = writeln!(io::stdout(), "{READY}");
    // Nothing is ever written into the pipe.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    mounts::take_away(pid);
    directory::remove(made);
}

fn ignore_polite_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: no handler is installed, so none can run in a wrong place.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// The program's side.
#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    /// `None` once it was let go.
    pipe: Option<ChildStdin>,
}

impl Keeper {
    /// Starts it; it is there when this returns.
    pub(crate) fn start(mut command: Command, directory: &Directory) -> Result<Keeper, MountError> {
        command.arg(ARGUMENT).arg(std::process::id().to_string());
        command.args(&directory.made);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/");
        // SAFETY: setsid is one system call and touches no memory of the parent's.
        unsafe { command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?)) };
        let failed = |source| MountError::NoKeeper { source };
        let mut child = command.spawn().map_err(failed)?;
        let (pipe, answer) = (child.stdin.take(), child.stdout.take());
        let mut keeper = Keeper { child, pipe };
        let mut word = String::new();
        let heard = answer.map_or(Ok(0), |answer| BufReader::new(answer).read_line(&mut word));
        heard.map_err(failed)?;
        if word.trim_end() == READY {
            return Ok(keeper);
        }
        keeper.let_go();
        Err(failed(io::Error::other(format!("the program that was started said {word:?}"))))
    }

    /// Lets it take the tree away, and waits until that is done.
    pub(crate) fn let_go(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            drop(pipe);
            // It was killed, then; nobody waits for its status but this.
            let _ = self.child.wait();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.let_go();
    }
}
