//! `perf record` on one processor, which is switched on once it is ready.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use mete_measure::processor;
use mete_measure::reason::Reason;
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::child::{Owned, check_installed};
use crate::scratch::Scratch;

/// The longest time that its start, or its end, may take.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest time until perf has read its own file, which it does slowly.
const READING_LIMIT: Duration = Duration::from_secs(60);

/// A running `perf record`. When this is dropped, it is killed and its file is removed.
pub struct Recorder {
    // Fields are dropped in this order: the process ends before its file is removed.
    process: Owned,
    _scratch: Scratch,
}

impl Recorder {
    /// Starts perf and waits until it records.
    ///
    /// # Errors
    ///
    /// If perf is not installed, may not record, or does not answer.
    pub fn begin(processor: usize, tracepoints: &[&str]) -> Result<Recorder, Reason> {
        let scratch = Scratch::new()?;
        let (mut control, mut answer) =
            (fifo(&scratch.path().join("control"))?, fifo(&scratch.path().join("answer"))?);
        let process = start(&scratch, processor, tracepoints)?;
        let mut recorder = Recorder { process, _scratch: scratch };
        control.write_all(b"enable\n")?;
        recorder.wait_for(&mut answer)?;
        Ok(recorder)
    }

    fn wait_for(&mut self, answer: &mut File) -> Result<(), Reason> {
        let end = Instant::now() + LIMIT;
        // The pipe does not block, so a perf that ends early is noticed.
        while Instant::now() < end && matches!(self.process.child().try_wait(), Ok(None)) {
            if matches!(answer.read(&mut [0; 16]), Ok(1..)) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(Reason::new("perf record does not start here"))
    }

    /// Asks perf to end and waits for it, so that it can finish its file.
    pub fn end(&mut self) {
        self.process.interrupt();
        self.process.ends_within(LIMIT);
    }
}

/// Extends a script that runs perf. perf looks for tracepoints in a mounted tracing file system, and would
/// mount one for the whole machine. Where there is none, the script's mount namespace gets a mount of its
/// own.
pub fn with_tracing(script: &str) -> String {
    format!(
        "test -d /sys/kernel/tracing/events || mount -t tracefs none /sys/kernel/tracing || exit\n{script}"
    )
}

/// Checks for the programs that [`with_tracing`] needs.
///
/// # Errors
///
/// If one of them is not installed.
pub fn check_tracing() -> Result<(), Reason> {
    check_installed("unshare")?;
    check_installed("perf").map(|_| ())
}

fn start(scratch: &Scratch, processor: usize, tracepoints: &[&str]) -> Result<Owned, Reason> {
    let events = tracepoints.iter().map(|name| name.replace('/', ":")).collect::<Vec<_>>().join(",");
    let script = with_tracing(&format!(
        "exec perf record --quiet --cpu {processor} \
         --event {events} --output data --delay -1 --control fifo:control,answer"
    ));
    check_tracing()?;
    Owned::start("unshare", &["--mount", "sh", "-c", &script], None, |command| {
        command.current_dir(scratch.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    })
}

/// Records the switches and wake-ups of `perf bench sched pipe` into the file `data` of a directory, while
/// the bench sends this number of messages on one processor. Returns the number of recorded events.
///
/// # Errors
///
/// If a program is not installed, one of them fails, or there are fewer events than messages.
pub fn record_messages(directory: &Path, processor: usize, messages: u32) -> Result<u64, Reason> {
    check_tracing()?;
    let script = with_tracing(&format!(
        "perf record --quiet --all-cpus --event sched:sched_switch,sched:sched_waking --output data -- \
         taskset -c {processor} perf bench sched pipe --loop {messages} > /dev/null
         perf script --input data --fields event | wc -l > events"
    ));
    // Not on the processor that is measured.
    let elsewhere = Some(processor::other_than(processor));
    let words = ["--mount", "setsid", "-w", "sh", "-c", &script];
    let mut process = Owned::start("unshare", &words, elsewhere, |command| {
        command.current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    })?;
    if !process.ends_within(READING_LIMIT) {
        return Err(Reason::new("perf record, or perf script, did not end well"));
    }
    let events = fs::read_to_string(directory.join("events"))?.trim().parse().unwrap_or(0);
    if events < u64::from(messages) {
        return Err(Reason::new(format!("only {events} events were recorded")));
    }
    Ok(events)
}

/// A named pipe. It is opened for both directions, so that neither side waits for the other one.
fn fifo(path: &Path) -> Result<File, Reason> {
    let made = mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR);
    made.map_err(Reason::while_trying("make a pipe for perf record"))?;
    Ok(OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?)
}
