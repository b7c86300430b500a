//! What an event costs with several loggers, side by side (KLogger paper, §7.1, table 1).

use std::sync::Arc;

use mete_trace::{ClockSource, Description, EventLayout, Memory, Options, Outcome, Producer, Recorder};

use super::loggers_page;
use crate::study::figure::is_noisy;
use crate::study::{StudyOptions, StudyResults};
use mete_base::progress::Progress;
use mete_bench::kernel::bpftrace::Bpftrace;
use mete_bench::kernel::generated::Generated;
use mete_bench::kernel::kmsg::KernelLog;
use mete_bench::kernel::perf_event::Recorded;
use mete_bench::kernel::tracefs::{Instance, Tracefs};
use mete_bench::traffic::{SlowEntry, system_calls};
use mete_bench::user::lttng::Peer;
use mete_bench::user::timed;
use mete_measure::interleave::{Samples, interleave};
use mete_measure::processor::{self, Pinned};
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use mete_measure::statistics::median;

/// Events of a piece: see [`PIECES`].
const EVENTS: u64 = 2_000;
/// Pieces of a repetition. Their median counts, because another task that gets the processor disturbs only one piece.
const PIECES: u64 = 15;
/// Events of a piece for loggers in programs, which take less time for each.
const OWN_EVENTS: u64 = 20_000;
/// Lines that are written to the kernel's log: as few as can be timed, because they push other lines out.
const LINES: u64 = 20;
/// The number of rounds, then the same for a quick run.
const ROUNDS: [usize; 2] = [11, 3];

/// The loggers, and the variants that they are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logger {
    /// A system call without a logger.
    Call,
    /// A system call without a logger that takes the path to its tracepoint.
    SlowCall,
    /// A generated program.
    Kernel,
    Ftrace,
    Perf,
    Bpftrace,
    Printk,
    /// A loop without events.
    Loop,
    /// The recorder of `mete-trace` for programs.
    Program,
    LttngLoop,
    Lttng,
}

use Logger::{
    Bpftrace as BpftracePrints, Call, Ftrace, Kernel, Loop, Lttng, LttngLoop, Perf, Printk, Program, SlowCall,
};

const ALL: [Logger; 11] =
    [Call, SlowCall, Kernel, Ftrace, Perf, BpftracePrints, Printk, Loop, Program, LttngLoop, Lttng];

/// The loggers that are shown, each with the variant that it is measured against.
pub(super) const SHOWN: [(Logger, Logger, &str); 7] = [
    (Kernel, SlowCall, "mete, kernel"),
    (Ftrace, SlowCall, "ftrace"),
    (Perf, SlowCall, "perf"),
    (BpftracePrints, SlowCall, "bpftrace"),
    (Printk, Call, "printk"),
    (Program, Loop, "mete, program"),
    (Lttng, LttngLoop, "LTTng-UST"),
];

pub(crate) fn study(options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
    let mut report = Report::new("mete study loggers");
    let rounds = ROUNDS[usize::from(options.is_quick)];
    let samples = match Stage::set_up() {
        Ok(mut stage) => Ok(interleave("loggers", rounds, &ALL, progress, |logger| stage.measure(logger))),
        Err(reason) => Err(reason),
    };
    for (logger, base, name) in SHOWN {
        let costs = samples.as_ref().map_err(Clone::clone).and_then(|samples| samples.net(logger, base));
        let row = Row::new(format!("{name}: an event"), "ns", costs);
        report.rows.push(if row.median.is_some() { row.note(about(logger)) } else { row });
        if !matches!(logger, Kernel | Program) {
            let ours = if logger == Lttng { (Program, Loop) } else { (Kernel, SlowCall) };
            let ratios = samples.as_ref().map_err(Clone::clone).and_then(|s| times(s, (logger, base), ours));
            report.rows.push(Row::new(format!("{name}: times ours"), "ratio", ratios));
        }
    }
    let absent = Err(Reason::new(lttng_modules()));
    report.rows.push(Row::new("LTTng, kernel: an event", "ns", absent));
    report.is_complete = !progress.is_cancelled();
    let noisy = samples.map_or_else(|_| Vec::new(), |samples| noisy(&samples));
    loggers_page::study(report, &noisy)
}

/// The loggers whose times, with or without the event, are too noisy for a verdict.
fn noisy(samples: &Samples<Logger>) -> Vec<&'static str> {
    let is_noisy = |logger| samples.of(logger).is_ok_and(|times| is_noisy(&times));
    let either = SHOWN.iter().filter(|(logger, base, _)| is_noisy(*logger) || is_noisy(*base));
    either.map(|(_, _, name)| *name).collect()
}

/// The quotients of a logger's cost and the cost of ours, from the same rounds.
fn times(
    samples: &Samples<Logger>,
    (logger, base): (Logger, Logger),
    (ours, our_base): (Logger, Logger),
) -> Result<Vec<f64>, Reason> {
    mete_measure::interleave::quotients(&samples.net(logger, base)?, &samples.net(ours, our_base)?)
}

fn about(logger: Logger) -> &'static str {
    match logger {
        Kernel => "a program generated from a schema, at raw_syscalls:sys_enter, into a trace on disk",
        Ftrace => "raw_syscalls:sys_enter in an instance of its own, overwriting",
        Perf => "raw_syscalls:sys_enter by perf_event_open, overwriting",
        BpftracePrints => "printf of two numbers at raw_syscalls:sys_enter, its output thrown away",
        Printk => {
            "a line with two numbers to /dev/kmsg, formatted by the program, without the bare system call"
        }
        Program => "two numbers into a recording buffer, time-stamp counter",
        Lttng => "four numbers, overwriting",
        Call | SlowCall | Loop | LttngLoop => "",
    }
}

/// The reason why LTTng's modules are missing. The paper's LTT was a part of the kernel; its successor consists of
/// modules.
fn lttng_modules() -> String {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let place = format!("/lib/modules/{release}");
    let is_there = ["extra", "updates", "updates/dkms"]
        .iter()
        .any(|part| std::path::Path::new(&place).join(part).join("lttng-tracer.ko").exists());
    match is_there {
        true => format!("its modules are in {place}, and no study loads modules into a kernel"),
        false => format!("its kernel modules are not installed in {place}"),
    }
}

/// All that the measurements need. A part that is missing fails when its logger is measured.
struct Stage {
    processor: usize,
    generated: Result<Generated, Reason>,
    tracefs: Result<Tracefs, Reason>,
    log: Result<KernelLog, Reason>,
    lttng: Result<Peer, Reason>,
    own: Own,
    _pinned: Pinned,
}

impl Stage {
    fn set_up() -> Result<Stage, Reason> {
        let processor = processor::quietest();
        Ok(Stage {
            processor,
            generated: Generated::at_system_calls(),
            tracefs: Tracefs::open(),
            log: KernelLog::open(),
            lttng: Peer::start(processor),
            own: Own::start()?,
            _pinned: Pinned::to(processor)?,
        })
    }

    fn measure(&mut self, logger: Logger) -> Result<f64, Reason> {
        match logger {
            Loop => return own_events(&|_| Ok(())),
            Program => return own_events(&|nth| self.own.record(nth)),
            LttngLoop => return self.lttng("none"),
            Lttng => return self.lttng("row"),
            Printk => return self.lines(),
            Call => return calls(),
            _ => {}
        }
        // If this fails, the costs contain the path to the tracepoint, too, which shows in the numbers.
        let _slow = SlowEntry::begin();
        match logger {
            Kernel => {
                let generated = self.generated.as_mut().map_err(|reason| reason.clone())?;
                generated.record(self.processor, EVENTS * PIECES, calls)
            }
            Ftrace => {
                let tracefs = self.tracefs.as_ref().map_err(Clone::clone)?;
                let _recording = Instance::recording(tracefs, &["raw_syscalls/sys_enter"])?;
                calls()
            }
            Perf => {
                let tracefs = self.tracefs.as_ref().map_err(Clone::clone)?;
                let id = tracefs.tracepoint_id("raw_syscalls/sys_enter")?;
                let _recording = Recorded::begin(id, self.processor)?;
                calls()
            }
            BpftracePrints => {
                let _printing = Bpftrace::start()?;
                calls()
            }
            _ => calls(),
        }
    }

    fn lttng(&mut self, what: &str) -> Result<f64, Reason> {
        self.lttng.as_mut().map_err(|reason| reason.clone())?.ask(what, OWN_EVENTS)
    }

    fn lines(&mut self) -> Result<f64, Reason> {
        let log = self.log.as_mut().map_err(|reason| reason.clone())?;
        let mut done = Ok(());
        let ns = timed(LINES, |lines| done = (0..lines).try_for_each(|nth| log.line(nth, 1)));
        done.map(|()| ns)
    }
}

/// Nanoseconds for a system call: the median of some pieces.
fn calls() -> Result<f64, Reason> {
    let pieces: Vec<f64> = (0..PIECES).map(|_| timed(EVENTS, system_calls)).collect();
    median(&pieces).ok_or_else(|| Reason::new("no piece was measured"))
}

/// Nanoseconds for a turn of a loop.
fn own_events(event: &dyn Fn(u64) -> Result<(), Reason>) -> Result<f64, Reason> {
    let mut done = Ok(());
    let ns = timed(OWN_EVENTS, |events| done = (0..events).try_for_each(event));
    done.map(|()| ns)
}

/// This program as its own recorder, which records into memory.
struct Own {
    memory: Arc<Memory>,
    _recorder: Recorder<Memory>,
}

/// The id of the only event.
const EVENT: u16 = 16;

impl Own {
    fn start() -> Result<Own, Reason> {
        let size_log2 = 22;
        let memory = Memory::new(1, size_log2, mete_trace::layout::DEFAULT_LOW_WATER_PERCENT);
        let memory = Arc::new(memory.map_err(Reason::from_error)?);
        let event = EventLayout { id: EVENT, name: "CALL".into(), doc: String::new(), fields: Vec::new() };
        let description = Description { schema: String::new(), events: vec![event] };
        let recorder = Recorder::start(Arc::clone(&memory), description, Options::flight(4 << 20))?;
        Ok(Own { memory, _recorder: recorder })
    }

    #[inline(always)]
    fn record(&self, nth: u64) -> Result<(), Reason> {
        let producer = Producer::new(mete_trace::Buffers::buffer(&*self.memory, 0));
        match producer.record(EVENT, &[nth, 1], || ClockSource::Counter.now()) {
            Outcome::Written => Ok(()),
            Outcome::WrittenAtMark => {
                producer.call_flush();
                Ok(())
            }
            Outcome::Lost => Err(Reason::new("an event was lost")),
        }
    }
}
