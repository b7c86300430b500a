//! Processes that measurements start.

use std::env;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use mete_measure::processor::Pinned;
use mete_measure::reason::Reason;
use rustix::process::{Pid, Signal, kill_process};

/// A child process. It is killed and waited for at the latest when this is dropped. On a machine with setpriv
/// it also dies with this process.
#[derive(Debug)]
pub struct Owned(Child);

impl Owned {
    /// Starts a program, on one processor if `processor` names one.
    ///
    /// No code of this program runs between fork and exec, so that the standard library does not fork. The
    /// child of a fork would be a component of its own for a moment, and leave its socket behind.
    ///
    /// # Errors
    ///
    /// If the program is not installed, or the system cannot start it.
    pub fn start(
        program: &str,
        arguments: &[&str],
        processor: Option<usize>,
        set_up: impl FnOnce(&mut Command),
    ) -> Result<Owned, Reason> {
        check_installed(program)?;
        let mut command = match check_installed("setpriv") {
            Ok(_) => Command::new("setpriv"),
            Err(_) => Command::new(program),
        };
        // The command is setpriv, which sets the signal and then becomes the program.
        if command.get_program() != program {
            command.args(["--pdeathsig", "KILL", "--", program]);
        }
        set_up(command.args(arguments));
        // The process inherits the processors on which this thread may run.
        let _pinned = processor.map(Pinned::to).transpose()?;
        Ok(Owned(command.spawn().map_err(Reason::while_trying(format!("start {program}")))?))
    }

    /// The process.
    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until the process has ended, not longer than `limit`. The answer is true if it ended well.
    pub fn ends_within(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while Instant::now() < end {
            match self.0.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                other => return other.ok().flatten().is_some_and(|status| status.success()),
            }
        }
        false
    }

    /// Asks the process to end, as Ctrl-C does.
    pub fn interrupt(&mut self) {
        // It has not been waited for yet, so the number is still that of this child.
        if let (Ok(None), Some(pid)) = (self.0.try_wait(), Pid::from_raw(self.0.id() as i32)) {
            let _ = kill_process(pid, Signal::INT);
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // This fails if the process has already ended, which is as good.
        let _ = self.0.kill();
        // Without this a zombie would stay until this process ends.
        let _ = self.0.wait();
    }
}

/// Where a program is installed.
///
/// # Errors
///
/// If the program is not installed.
pub fn check_installed(program: &str) -> Result<PathBuf, Reason> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places: Vec<_> = env::split_paths(&path).map(|directory| directory.join(program)).collect();
    let found = places.into_iter().find(|place| place.is_file());
    found.ok_or_else(|| Reason::new(format!("{program} is not installed")))
}

/// Whether a process is there and is no zombie.
#[cfg(test)]
pub(crate) fn is_there(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_started_is_gone_with_its_guard() {
        let child = Owned::start("sleep", &["60"], None, |_| ()).unwrap();
        let path = format!("/proc/{}", child.pid());
        assert!(std::path::Path::new(&path).exists());
        drop(child);
        assert!(!std::path::Path::new(&path).exists());
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let error = Owned::start("mete-no-such-program", &[], None, |_| ()).unwrap_err();
        assert_eq!(error.to_string(), "mete-no-such-program is not installed");
    }
}
