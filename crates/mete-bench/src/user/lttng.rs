//! LTTng-UST as a peer: a program that is compiled when it is needed and runs under a session daemon of its
//! own.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use mete_measure::reason::Reason;

use crate::child::{Owned, check_installed};
use crate::scratch::Scratch;

/// The running program. When this is dropped, the program and the session daemon end, and their files are
/// removed.
pub struct Peer {
    // Fields are dropped in this order: the processes end before their files go.
    _process: Owned,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _scratch: Scratch,
}

impl Peer {
    /// Compiles and starts it.
    ///
    /// # Errors
    ///
    /// The reason names what is missing on this machine.
    pub fn start(processor: usize) -> Result<Peer, Reason> {
        check_rights()?;
        check_installed("lttng-sessiond")?;
        let scratch = Scratch::new()?;
        compile(&scratch)?;
        let mut process = launch(&scratch, processor)?;
        let no_pipe = || Reason::new("no pipe to the peer");
        let input = process.child().stdin.take().ok_or_else(no_pipe)?;
        let output = BufReader::new(process.child().stdout.take().ok_or_else(no_pipe)?);
        Ok(Peer { _process: process, input, output, _scratch: scratch })
    }

    /// Nanoseconds of each of `rounds` rounds of a loop.
    ///
    /// # Errors
    ///
    /// If the program has ended.
    pub fn ask(&mut self, what: &str, rounds: u64) -> Result<f64, Reason> {
        let mut line = String::new();
        writeln!(self.input, "{what} {rounds}")
            .and_then(|()| self.output.read_line(&mut line))
            .map_err(Reason::while_trying("talk to the LTTng peer"))?;
        line.trim()
            .parse()
            .map_err(|_| Reason::new("the LTTng session could not be set up, or its program ended"))
    }
}

fn check_rights() -> Result<(), Reason> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(Reason::new("its session daemon is kept apart in namespaces, which needs root"))
}

fn compile(scratch: &Scratch) -> Result<(), Reason> {
    scratch.write("row.h", include_str!("../../peer/row.h"))?;
    scratch.write("peer.c", include_str!("../../peer/lttng.c"))?;
    scratch.write("session.sh", include_str!("../../peer/lttng.sh"))?;
    let done = Command::new("cc")
        .args(["-O2", "-I.", "peer.c", "-o", "peer", "-llttng-ust", "-ldl"])
        .current_dir(scratch.path())
        .output()
        .map_err(|_| Reason::new("no C compiler (cc) is installed to build the peer"))?;
    if done.status.success() {
        return Ok(());
    }
    // The first line of a compiler's messages usually names the missing file.
    let said = String::from_utf8_lossy(&done.stderr);
    let first = said.lines().next().unwrap_or_default();
    Err(Reason::new(format!("it does not compile (package liblttng-ust-dev?): {first}")))
}

fn launch(scratch: &Scratch, processor: usize) -> Result<Owned, Reason> {
    let processor = processor.to_string();
    let arguments = ["--mount", "--pid", "--fork", "--kill-child", "sh", "session.sh", &processor];
    Owned::start("unshare", &arguments, None, |command| {
        command
            .current_dir(scratch.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
    })
}
