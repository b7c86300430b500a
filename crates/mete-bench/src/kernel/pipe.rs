//! `perf bench sched pipe`: how much slower a whole program gets that only switches, with our log, ftrace and
//! `perf record` on the same two tracepoints.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use mete_kernel::{Characteristic, Kernel, Principal, event};
use mete_log::{DomainId, Entries, FileId, FileSpec, Plan, Shape, Stamp, ring};
use mete_measure::Bar;
use mete_measure::interleave::interleave;
use mete_measure::processor::{self, Pinned};
use mete_measure::reason::{Reason, made};
use mete_measure::report::Row;

use super::perf_record;
use super::tracefs::{Instance, Tracefs};
use crate::background::Background;
use crate::child::{Owned, check_installed};
use crate::context::Context;
use crate::recording::ScratchRecording;
use crate::scratch::Scratch;

/// Messages of one repetition, then of a quick one. They take a fifth of a second or less.
const MESSAGES: [u32; 2] = [40_000, 20_000];
/// The longest time for a repetition.
const LIMIT: Duration = Duration::from_secs(20);
/// The two tracepoints: a switch and a wake-up.
const TRACEPOINTS: [&str; 2] = ["sched/sched_switch", "sched/sched_waking"];

const CHARACTERISTICS: [Characteristic; 2] = [Characteristic::ServiceTime, Characteristic::Ipc];
/// The log file of service time: the first one of the plan.
const SERVICE_FILE: FileId = FileId::new(1);

#[derive(Clone, Copy, PartialEq)]
enum PipeLogger {
    Nothing,
    OurLog,
    /// What `mete record` does: see [`Recording`].
    Recording,
    Ftrace,
    PerfRecord,
    PerfSchedRecord,
}

pub(crate) fn rows(context: &mut Context<'_>) -> Vec<Row> {
    // The bench runs on this processor, and recorders are asked for its events alone.
    let processor = processor::quietest();
    // Readers inherit the processor of this thread. They must not run on the processor that is measured.
    match Pinned::to(processor::other_than(processor)) {
        Ok(_pinned) => rows_of(context, processor),
        Err(reason) => vec![Row::new("pipe: all rows", "ns", Err(reason))],
    }
}

/// What is added to a message on this processor. The calling thread runs on another one, where there is one.
fn rows_of(context: &mut Context<'_>, processor: usize) -> Vec<Row> {
    use PipeLogger::{Ftrace, Nothing, OurLog, PerfRecord, PerfSchedRecord, Recording};
    let messages = MESSAGES[usize::from(context.options.is_quick)];
    let (kernel, tracefs) = (configured_kernel(), Tracefs::open());
    let mut setup = PipeSetup { kernel, recording: paused_recording(), tracefs, processor, messages };
    let rounds = context.rounds(15);
    let variants = [Nothing, OurLog, Recording, Ftrace, PerfRecord, PerfSchedRecord];
    let samples =
        interleave("perf bench sched pipe", rounds, &variants, context.progress, |with| setup.measure(with));
    let added = |name: &str, with| Row::new(format!("pipe: {name}"), "ns", samples.net(with, Nothing));
    let ratio = |name: &str, of, to, limit| {
        Row::new(format!("pipe: {name}"), "ratio", samples.ratio(of, to, Nothing)).bar(Bar::AtMost(limit))
    };
    vec![
        Row::new("pipe: nothing", "ns", samples.of(Nothing))
            .note("perf bench sched pipe, a message there and back, both processes on one processor"),
        added("added by our log", OurLog)
            .note("service time (run-queue clock) and both sides of each wake-up"),
        added("added by recording", Recording)
            .note("SCHEDOUT, SCHEDIN and TRY_TO_WAKEUP of the scheduler's schema, into a trace on disk"),
        added("added by ftrace", Ftrace).note("sched_switch and sched_waking, with a reader"),
        added("added by perf record", PerfRecord).note("sched_switch and sched_waking, on this processor"),
        added("added by perf sched record", PerfSchedRecord).note("all that it records, on all processors"),
        ratio("our log / ftrace", OurLog, Ftrace, 0.6),
        ratio("our log / perf record", OurLog, PerfRecord, 0.3),
        ratio("recording / ftrace", Recording, Ftrace, 0.6),
        ratio("recording / perf sched record", Recording, PerfSchedRecord, 0.25),
    ]
}

/// The events that are recorded of each switch and each wake-up.
pub(super) const RECORDED: [&str; 3] = ["SCHEDIN", "SCHEDOUT", "TRY_TO_WAKEUP"];

/// A recording of [`RECORDED`] with nothing attached yet.
fn paused_recording() -> Result<ScratchRecording, Reason> {
    let mut session = ScratchRecording::begin("scheduler", &RECORDED)?;
    session.pause()?;
    Ok(session)
}

/// The kernel component with a log file for each event. Nothing is attached yet.
fn configured_kernel() -> Result<Kernel, Reason> {
    let kernel = Kernel::load()?;
    let mut plan = Plan::new(Shape::KERNEL);
    for event in [event::SERVICE_TIME, event::IPC_SEND, event::IPC_RECEIVE] {
        let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::RunQueue, add: false, rows: 1024 };
        let file = plan.file(spec)?;
        plan.route_event(event, file)?;
    }
    kernel.areas().for_each(|area| plan.apply(area));
    Ok(kernel)
}

struct PipeSetup {
    kernel: Result<Kernel, Reason>,
    recording: Result<ScratchRecording, Reason>,
    tracefs: Result<Tracefs, Reason>,
    processor: usize,
    messages: u32,
}

impl PipeSetup {
    fn measure(&mut self, with: PipeLogger) -> Result<f64, Reason> {
        match with {
            PipeLogger::Nothing => self.bench(|_| Ok(())),
            PipeLogger::OurLog => self.with_our_log(),
            PipeLogger::Recording => self.with_recording(),
            PipeLogger::Ftrace => self.with_ftrace(),
            PipeLogger::PerfRecord => self.with_perf_record(),
            PipeLogger::PerfSchedRecord => with_perf_sched_record(self.processor, self.messages),
        }
    }

    fn bench(&self, begin: impl FnOnce(u32) -> Result<(), Reason>) -> Result<f64, Reason> {
        bench(self.processor, self.messages, begin)
    }

    /// Each of the two processes is in a domain of its own. So each switch and each wake-up is between
    /// domains, and is logged.
    fn with_our_log(&mut self) -> Result<f64, Reason> {
        let kernel = made(&mut self.kernel)?;
        let mut logging = Logging::begin(kernel)?;
        let before = logging.switches(self.processor);
        let answer = bench(self.processor, self.messages, |pid| logging.bind(pid))?;
        let rows = logging.switches(self.processor) - before;
        // There are two switches for each message, but the first ones come before both processes have their
        // domains.
        if rows < u64::from(self.messages) {
            return Err(Reason::new(format!("only {rows} switches were logged")));
        }
        Ok(answer)
    }

    fn with_recording(&mut self) -> Result<f64, Reason> {
        let session = made(&mut self.recording)?;
        // Reading the count flushes all records, which must not happen while the bench runs.
        let before = session.records(self.processor)?;
        session.resume()?;
        let answer = bench(self.processor, self.messages, |_| Ok(()));
        session.pause()?;
        let records = session.records(self.processor)? - before;
        // There are two switches for each message, with two records each.
        if records < 4 * u64::from(self.messages) {
            return Err(Reason::new(format!("only {records} events were recorded")));
        }
        answer
    }

    fn with_ftrace(&self) -> Result<f64, Reason> {
        let tracefs = self.tracefs.as_ref().map_err(Clone::clone)?;
        let instance = Instance::recording(tracefs, &TRACEPOINTS)?;
        // Declared after the instance, so dropped before it: an instance cannot be removed while it is read.
        let _reader = read_raw(&instance, self.processor)?;
        self.bench(|_| Ok(()))
    }

    fn with_perf_record(&self) -> Result<f64, Reason> {
        let mut recorder = perf_record::Recorder::begin(self.processor, &TRACEPOINTS)?;
        let answer = self.bench(|_| Ok(()));
        recorder.end();
        answer
    }
}

/// perf starts the bench itself, because `perf sched record` has no option to begin on request.
fn with_perf_sched_record(processor: usize, messages: u32) -> Result<f64, Reason> {
    let scratch = Scratch::new()?;
    perf_record::check_tracing()?;
    let script = perf_record::with_tracing(&format!(
        "exec perf sched record --output data -- taskset -c {processor} perf bench sched pipe --loop {messages}"
    ));
    let words = ["--mount", "setsid", "-w", "sh", "-c", &script];
    let process = Owned::start("unshare", &words, Some(processor::other_than(processor)), |command| {
        command.current_dir(scratch.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    })?;
    answer(process)
}

/// Nanoseconds for a message. `begin` gets the id of the process, which has just started.
pub(super) fn bench(
    processor: usize,
    messages: u32,
    begin: impl FnOnce(u32) -> Result<(), Reason>,
) -> Result<f64, Reason> {
    check_installed("perf")?;
    // The bench is in a session of its own: the kernel must not count processes that wake each other so often
    // to the session of a user's shell.
    let arguments = ["perf", "bench", "sched", "pipe", "--loop", &messages.to_string()];
    let process = Owned::start("setsid", &arguments, Some(processor), |command| {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
    })?;
    begin(process.pid())?;
    answer(process)
}

/// The result that `perf bench` prints at its end.
fn answer(mut process: Owned) -> Result<f64, Reason> {
    if !process.ends_within(LIMIT) {
        return Err(Reason::new("perf bench did not end well"));
    }
    let mut text = String::new();
    process.child().stdout.take().map(|mut out| out.read_to_string(&mut text)).transpose()?;
    let us = microseconds(&text).ok_or_else(|| Reason::new("perf bench does not say usecs/op"))?;
    // perf gives microseconds for an operation.
    Ok(us * 1e3)
}

fn microseconds(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.trim().strip_suffix("usecs/op")?.trim().parse().ok())
}

/// Keeps service time and IPC logged as long as this lives.
struct Logging<'a>(&'a mut Kernel);

impl Logging<'_> {
    fn begin(kernel: &mut Kernel) -> Result<Logging<'_>, Reason> {
        // The guard is made first, so that it also disables the first characteristic if the second one fails.
        let logging = Logging(kernel);
        for what in CHARACTERISTICS {
            logging.0.enable(&what)?;
        }
        // The first binding attaches the programs by which children inherit domains. That takes longer than
        // the whole bench, so it is done before the bench runs.
        logging.0.bind(&Principal::Process(std::process::id() as i32), DomainId::default())?;
        Ok(logging)
    }

    /// The number of rows of service time on a processor so far.
    fn switches(&self, processor: usize) -> u64 {
        ring::written(&self.0.area(processor).register(SERVICE_FILE).index)
    }

    fn bind(&mut self, parent: u32) -> Result<(), Reason> {
        self.0.bind(&Principal::Process(parent as i32), DomainId::new(1))?;
        let child = wait_for_child(parent)?;
        self.0.bind(&Principal::Process(child as i32), DomainId::new(2))?;
        Ok(())
    }
}

impl Drop for Logging<'_> {
    fn drop(&mut self) {
        for what in CHARACTERISTICS {
            // Detaching does not fail; if it did, dropping the kernel component would detach.
            let _ = self.0.disable(&what);
        }
    }
}

/// Waits for the first child of a process.
fn wait_for_child(parent: u32) -> Result<u32, Reason> {
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        let text = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
        if let Some(child) = text.split_whitespace().next().and_then(|pid| pid.parse().ok()) {
            return Ok(child);
        }
        // The bench has just started, and needs some time until it forks.
        thread::sleep(Duration::from_micros(200));
    }
    Err(Reason::new("perf bench started no second process"))
}

/// Reads an ftrace instance's events and discards them, on another processor, as long as the answer lives.
fn read_raw(instance: &Instance<'_>, processor: usize) -> Result<Background, Reason> {
    let mut pipe = instance.raw_pipe(processor)?;
    Ok(Background::start("ftrace reader", move |is_done| {
        let mut piece = vec![0; 64 << 10];
        while !is_done.load(Ordering::Relaxed) {
            if !matches!(pipe.read(&mut piece), Ok(1..)) {
                thread::sleep(Duration::from_millis(1));
            }
        }
    })?)
}
