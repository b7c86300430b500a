//! What several tests need: processes that end with the test, and bounded waiting.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test may end so")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use mete_kernel::{Kernel, KernelError};
use mete_sched::domains::process::{Process, processes};

/// The program of `test-programs/subject.rs`.
pub const SUBJECT: &str = env!("CARGO_BIN_EXE_mete-sched-subject");

/// A process that is ended with the test, however it ends.
pub struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    pub fn subject(arguments: &[&str]) -> Running {
        let mut command = Command::new(SUBJECT);
        Running::start(command.args(arguments))
    }

    pub fn start(command: &mut Command) -> Running {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Running { child, output }
    }

    /// A subject that waits, and has said so.
    pub fn waiting() -> Running {
        let mut waiting = Running::subject(&["wait"]);
        assert_eq!(waiting.hear(), "here");
        waiting
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line.
    pub fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line that it says; empty at its end.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: a child of this process that was not waited for yet, so the number is its own.
        assert_eq!(unsafe { libc::kill(self.pid() as i32, signal) }, 0);
    }

    /// Waits for its end after `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes its input, and says what it said last.
    pub fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let last = self.hear();
        assert!(self.child.wait().unwrap().success());
        last
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn children(parent: u32) -> Vec<Process> {
    processes().into_iter().filter_map(Process::read).filter(|process| process.parent == parent).collect()
}

/// Waits until something holds; it must within half a minute.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(30), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The kernel component, or a word about why it cannot be used here.
pub fn kernel() -> Option<Kernel> {
    match Kernel::load() {
        Ok(kernel) => Some(kernel),
        Err(
            error @ (KernelError::Privilege { .. }
            | KernelError::NoTypeInformation
            | KernelError::PidNamespace),
        ) => {
            skip(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Says why a test does not run here.
pub fn skip(reason: &str) {
    println!("SKIPPED: {reason}");
}
