//! Programs that a study watches. Each is in a session of its own, together with all processes that it
//! starts.

use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use mete_base::progress::Progress;
use mete_measure::reason::Reason;
use rustix::process::{Signal, WaitId, WaitIdOptions};

use crate::child::{Owned, check_installed};

/// The time between two checks whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A program that runs. When this is dropped, the program and all of its session are killed.
pub struct Load(Owned);

impl Load {
    /// Starts a program in a directory, without input and output.
    ///
    /// # Errors
    ///
    /// If the program, or setsid, is not installed.
    pub fn start(words: &[&str], directory: &Path) -> Result<Load, Reason> {
        Load::with(words, directory, |_| ())
    }

    /// The same, after `set_up` has changed the command.
    ///
    /// # Errors
    ///
    /// As [`Load::start`].
    pub fn with(words: &[&str], directory: &Path, set_up: impl FnOnce(&mut Command)) -> Result<Load, Reason> {
        check_installed(words.first().copied().unwrap_or_default())?;
        // The kernel is fair among sessions. Processes that wake each other all the time, in one session with
        // a user's shell, could keep the shell from the processors.
        let owned = Owned::start("setsid", words, None, |command| {
            command.current_dir(directory);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            set_up(command);
        });
        Ok(Load(owned?))
    }

    /// Its process id: setsid becomes the program, with the same id.
    pub fn pid(&self) -> i32 {
        self.0.pid() as i32
    }

    /// The program's output, if [`Load::with`] has asked for it. Only the first call returns it.
    pub fn output(&mut self) -> Option<ChildStdout> {
        self.0.child().stdout.take()
    }

    /// Waits until the program has ended, the time is up or the run is stopped. Returns how long that took.
    pub fn wait(&mut self, limit: Duration, progress: &dyn Progress) -> Duration {
        let begin = Instant::now();
        while begin.elapsed() < limit && !progress.is_cancelled() && self.runs() {
            std::thread::sleep(LOOK_EVERY);
        }
        begin.elapsed()
    }

    /// Whether the program runs. A program that has ended is not waited for here, so that its process id
    /// stays its own.
    fn runs(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let pid = rustix::process::Pid::from_raw(self.pid());
        let ended = pid.map(|pid| rustix::process::waitid(WaitId::Pid(pid), options));
        matches!(ended, Some(Ok(None)))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // The child has not been waited for, so its number is still its own. If `setsid` has run, the child
        // leads a group of that number.
        if let Some(group) = rustix::process::Pid::from_raw(self.pid()) {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::is_there;

    #[test]
    fn klog_9_what_a_program_has_started_is_gone_with_it() -> Result<(), Reason> {
        let scratch = crate::scratch::Scratch::new()?;
        let load = Load::start(&["sh", "-c", "sleep 61 & echo $! > child; wait"], scratch.path())?;
        let written = || std::fs::read_to_string(scratch.path().join("child")).unwrap_or_default();
        let begin = Instant::now();
        while !written().ends_with('\n') && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(LOOK_EVERY);
        }
        let child: i32 = written().trim().parse().unwrap();
        assert!(is_there(child), "{child}");
        drop(load);
        while is_there(child) && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(LOOK_EVERY);
        }
        assert!(!is_there(child));
        Ok(())
    }

    #[test]
    fn klog_9_a_program_that_is_missing_is_named() {
        let error =
            Load::start(&["mete-no-such-program"], Path::new("/")).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("mete-no-such-program is not installed"));
    }
}
