//! Processes that measurements start.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::processor;
use crate::reason::Reason;

/// A process of ours: killed and waited for at the latest when this is dropped, and when this
/// process dies.
#[derive(Debug)]
pub struct Owned(Child);

impl Owned {
    /// Starts it, on one processor if that is said.
    ///
    /// # Errors
    ///
    /// That the program is not installed, or what else the system says.
    pub fn start(command: &mut Command, processor: Option<usize>) -> Result<Owned, Reason> {
        let program = command.get_program().to_string_lossy().into_owned();
        let parent = std::process::id();
        // SAFETY: only system calls between fork and exec, no memory is allocated.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() as u32 != parent {
                    return Err(std::io::ErrorKind::BrokenPipe.into());
                }
                processor.map_or(Ok(()), processor::pin_after_fork)
            });
        }
        let child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Reason::new(format!("{program} is not installed")),
            _ => Reason::new(format!("cannot start {program}: {error}")),
        })?;
        Ok(Owned(child))
    }

    /// The process.
    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it has ended, not longer than `limit`; true if it ended well.
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

    /// Asks it to end, as Ctrl-C does.
    pub fn interrupt(&mut self) {
        if let (Ok(None), Ok(pid)) = (self.0.try_wait(), libc::pid_t::try_from(self.0.id())) {
            // SAFETY: not waited for yet, so the number is still our child's.
            unsafe { libc::kill(pid, libc::SIGINT) };
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_started_is_gone_with_its_guard() {
        let child = Owned::start(Command::new("sleep").arg("60"), None).unwrap();
        let path = format!("/proc/{}", child.pid());
        assert!(std::path::Path::new(&path).exists());
        drop(child);
        assert!(!std::path::Path::new(&path).exists());
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let error = Owned::start(&mut Command::new("mete-no-such-program"), None).unwrap_err();
        assert_eq!(error.to_string(), "mete-no-such-program is not installed");
    }
}
