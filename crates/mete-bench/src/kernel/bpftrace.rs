//! bpftrace as a logger: it prints a line at each system call on this machine.

use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mete_measure::reason::Reason;

use crate::child::check_installed;
use crate::load::Load;
use crate::scratch::Scratch;

/// The longest time until the first line: bpftrace compiles its program first.
const START: Duration = Duration::from_secs(10);

/// A running bpftrace. It is killed when this is dropped.
pub struct Bpftrace {
    load: Option<Load>,
    reader: Option<JoinHandle<()>>,
    _scratch: Scratch,
}

impl Bpftrace {
    /// Starts bpftrace and waits for its first line.
    ///
    /// # Errors
    ///
    /// If bpftrace is not installed, or prints nothing.
    pub fn start() -> Result<Bpftrace, Reason> {
        check_installed("bpftrace")?;
        check_installed("unshare")?;
        let scratch = Scratch::new()?;
        // Where the tracing file system is not mounted, bpftrace gets a mount of its own.
        let script = "test -d /sys/kernel/tracing/events || mount -t tracefs none /sys/kernel/tracing || exit
             exec bpftrace -e 'tracepoint:raw_syscalls:sys_enter { printf(\"%d %d\\n\", args->id, 1); }'";
        let words = ["unshare", "--mount", "sh", "-c", script];
        let mut load = Load::with(&words, scratch.path(), |command| {
            command.stdout(Stdio::piped());
        })?;
        let output = load.output().ok_or_else(|| Reason::new("no pipe to bpftrace"))?;
        let (tell, told) = channel();
        let reader = thread::Builder::new().name("bpftrace".into()).spawn(move || read(output, &tell))?;
        // Made before waiting, so that a failure below ends the process, too.
        let bpftrace = Bpftrace { load: Some(load), reader: Some(reader), _scratch: scratch };
        wait(&told)?;
        Ok(bpftrace)
    }
}

fn wait(told: &Receiver<()>) -> Result<(), Reason> {
    told.recv_timeout(START).map_err(|_| Reason::new("bpftrace prints nothing here"))
}

/// Reads all output and discards it. Reports the first line that is an event's.
fn read(output: ChildStdout, tell: &std::sync::mpsc::Sender<()>) {
    let mut lines = BufReader::new(output);
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        // bpftrace first prints how many probes it attaches.
        if line.starts_with(|first: char| first.is_ascii_digit()) {
            let _ = tell.send(());
            break;
        }
        line.clear();
    }
    let mut piece = vec![0; 64 << 10];
    while lines.read(&mut piece).is_ok_and(|bytes| bytes > 0) {}
}

impl Drop for Bpftrace {
    fn drop(&mut self) {
        // When the process ends, the other end of the pipe is closed, and the reader sees the end of the
        // file.
        self.load = None;
        drop(self.reader.take().map(JoinHandle::join));
    }
}
