//! The loggers, and one measurement with each.

use std::sync::Arc;

use mete_bench::kernel::bpftrace::Bpftrace;
use mete_bench::kernel::generated::Generated;
use mete_bench::kernel::kmsg::KernelLog;
use mete_bench::kernel::perf_event::Recorded;
use mete_bench::kernel::tracefs::{Instance, Tracefs};
use mete_bench::traffic::{SlowEntry, system_calls};
use mete_bench::user::lttng::Peer;
use mete_bench::user::timed;
use mete_measure::Reason;
use mete_measure::processor::{self, Pinned};
use mete_measure::reason::made;
use mete_measure::statistics::median;
use mete_trace::layout::{DEFAULT_BYTES, DEFAULT_LOW_WATER_PERCENT, DEFAULT_SIZE_LOG2};
use mete_trace::{ClockSource, Description, EventLayout, Memory, Options, Outcome, Producer, Recorder};

/// Events of a piece: see [`PIECES`].
const EVENTS: u64 = 2_000;
/// Pieces of a repetition. Their median counts, because another task that gets the processor disturbs only
/// one piece.
const PIECES: u64 = 15;
/// Events of a piece for loggers in programs, which take less time for each.
const OWN_EVENTS: u64 = 20_000;
/// Lines that are written to the kernel's log: as few as can be timed, because they push other lines out.
const LINES: u64 = 20;

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

// The logger and the program that runs it have the same name.
use Logger::{
    Bpftrace as BpftracePrints, Call, Ftrace, Kernel, Loop, Lttng, LttngLoop, Perf, Printk, Program, SlowCall,
};

pub(super) const ALL: [Logger; 11] =
    [Call, SlowCall, Kernel, Ftrace, Perf, BpftracePrints, Printk, Loop, Program, LttngLoop, Lttng];

/// All that the measurements need. A part that is missing fails when its logger is measured.
pub(super) struct LoggerSetup {
    processor: usize,
    generated: Result<Generated, Reason>,
    tracefs: Result<Tracefs, Reason>,
    log: Result<KernelLog, Reason>,
    lttng: Result<Peer, Reason>,
    own: Own,
    _pinned: Pinned,
}

impl LoggerSetup {
    pub(super) fn new() -> Result<LoggerSetup, Reason> {
        let processor = processor::quietest();
        Ok(LoggerSetup {
            processor,
            generated: Generated::at_system_calls(),
            tracefs: Tracefs::open(),
            log: KernelLog::open(),
            lttng: Peer::start(processor),
            own: Own::start()?,
            _pinned: Pinned::to(processor)?,
        })
    }

    /// Nanoseconds for an event with the logger, or for what is measured without one.
    pub(super) fn measure(&mut self, logger: Logger) -> Result<f64, Reason> {
        match logger {
            Loop => own_events(&|_| Ok(())),
            Program => own_events(&|nth| self.own.record(nth)),
            LttngLoop => self.lttng("none"),
            Lttng => self.lttng("row"),
            Printk => self.lines(),
            Call => calls(),
            SlowCall => past_tracepoint(calls),
            Kernel => past_tracepoint(|| self.generated()),
            Ftrace => past_tracepoint(|| self.ftrace()),
            Perf => past_tracepoint(|| self.perf()),
            BpftracePrints => past_tracepoint(bpftrace),
        }
    }

    fn generated(&mut self) -> Result<f64, Reason> {
        let generated = made(&mut self.generated)?;
        generated.record(self.processor, EVENTS * PIECES, calls)
    }

    fn ftrace(&self) -> Result<f64, Reason> {
        let tracefs = self.tracefs.as_ref().map_err(Clone::clone)?;
        let _recording = Instance::recording(tracefs, &["raw_syscalls/sys_enter"])?;
        calls()
    }

    fn perf(&self) -> Result<f64, Reason> {
        let tracefs = self.tracefs.as_ref().map_err(Clone::clone)?;
        let id = tracefs.tracepoint_id("raw_syscalls/sys_enter")?;
        let _recording = Recorded::begin(id, self.processor)?;
        calls()
    }

    fn lttng(&mut self, what: &str) -> Result<f64, Reason> {
        made(&mut self.lttng)?.ask(what, OWN_EVENTS)
    }

    fn lines(&mut self) -> Result<f64, Reason> {
        let log = made(&mut self.log)?;
        let mut done = Ok(());
        let ns = timed(LINES, |lines| done = (0..lines).try_for_each(|nth| log.line(nth, 1)));
        done.map(|()| ns)
    }
}

fn bpftrace() -> Result<f64, Reason> {
    let _printing = Bpftrace::start()?;
    calls()
}

/// Measures while system calls take the path to their tracepoint, whether or not anything is attached to it.
fn past_tracepoint(measure: impl FnOnce() -> Result<f64, Reason>) -> Result<f64, Reason> {
    // If this fails, the costs contain the path to the tracepoint, too, which shows in the numbers.
    let _slow = SlowEntry::begin();
    measure()
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
        let memory = Memory::new(1, DEFAULT_SIZE_LOG2, DEFAULT_LOW_WATER_PERCENT);
        let memory = Arc::new(memory.map_err(Reason::from_error)?);
        let event = EventLayout { id: EVENT, name: "CALL".into(), doc: String::new(), fields: Vec::new() };
        let description = Description { schema: String::new(), events: vec![event] };
        let recorder = Recorder::start(Arc::clone(&memory), description, Options::flight(DEFAULT_BYTES))?;
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
