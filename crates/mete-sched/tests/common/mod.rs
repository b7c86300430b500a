//! What several tests need: processes that end with the test, and waits with a bound.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test may end so")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use mete_kernel::{Kernel, KernelError};
use mete_sched::domains::process::{Process, processes};
use mete_sched::precedence::Precedence;

/// The program of `test-programs/subject.rs`.
pub const SUBJECT: &str = env!("CARGO_BIN_EXE_mete-sched-subject");

/// A pseudo-random sequence (xorshift); the seed is not zero.
pub struct Random(pub u64);

impl Random {
    /// A new sequence each time. Its seed is printed.
    pub fn seeded() -> Random {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let seed = now.as_nanos() as u64 | 1;
        println!("seed {seed}");
        Random(seed)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A process that ends with the test, in whatever way the test ends.
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

    /// A subject that waits, and has reported that it is there.
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

    /// The next line that the process writes; empty at its end.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: it is a child of this process that was not waited for yet, so the number is still its own.
        assert_eq!(unsafe { libc::kill(self.pid() as i32, signal) }, 0);
    }

    /// Kills the process with signal 9, and waits for its end.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the process's input, and returns the last line that it wrote.
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

/// A subject that waits, and whose program has this name.
pub fn waiting_as(name: &str) -> Running {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join(name);
    std::os::unix::fs::symlink(SUBJECT, &program).unwrap();
    let mut waiting = Running::start(Command::new(&program).arg("wait"));
    assert_eq!(waiting.hear(), "here");
    waiting
}

pub fn children(parent: u32) -> Vec<Process> {
    processes().into_iter().filter_map(Process::read).filter(|process| process.parent == parent).collect()
}

/// Waits until a condition holds. It must hold within five minutes.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(300), "did not happen in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The kernel component. If it cannot be used here, prints why.
pub fn kernel() -> Option<Kernel> {
    // The kernel's verifier takes seconds of processor time. Beside other load, that would be minutes.
    let _precedence = Precedence::take();
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

/// Prints why a test does not run here.
pub fn skip(reason: &str) {
    println!("SKIPPED: {reason}");
}

/// A control group that is removed at the end of the test.
pub struct Group(pub PathBuf);

impl Group {
    /// A new group in some hierarchy. If none can be made, prints why.
    pub fn make(name: &str) -> Option<Group> {
        let name = format!("mete-sched-{name}-{}", std::process::id());
        let mounts = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];
        let made = mounts.into_iter().map(|mount| PathBuf::from(mount).join(&name)).find(|path| {
            let is_group = path.parent().is_some_and(|mount| mount.join("cgroup.procs").exists());
            is_group && fs::create_dir(path).is_ok()
        });
        if made.is_none() {
            skip("no control group can be made here; run as root");
        }
        made.map(Group)
    }

    pub fn take(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let root = self.0.parent().unwrap().join("cgroup.procs");
        for pid in fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = fs::write(&root, pid);
        }
        eventually("the group is empty", || fs::remove_dir(&self.0).is_ok() || !self.0.exists());
    }
}
