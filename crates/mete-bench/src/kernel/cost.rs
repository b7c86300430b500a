//! What a row costs at two tracepoints, beside its peers. All costs are differences against a tracepoint with
//! nothing attached.

use mete_kernel::bench::{Bench, BenchPoint, BenchProgram, EVENT};
use mete_log::{Entries, FileSpec, Plan, Shape, Stamp, ring};
use mete_measure::Bar;
use mete_measure::interleave::{Samples, interleave};
use mete_measure::processor::{self, Batch, Pinned};
use mete_measure::reason::{Reason, made};
use mete_measure::report::Row;
use mete_measure::statistics::median;

use super::generated::Generated;
use super::perf_event::Recorded;
use super::tracefs::{Instance, Tracefs};
use crate::context::Context;
use crate::traffic::{Echo, Partner, SlowEntry, system_calls};
use crate::user::timed;

/// System calls of one piece; the other kind of piece has round trips, of two switches each. A piece takes
/// less time than other tasks usually get the processor for, so most pieces are undisturbed.
const CALLS: u64 = 2_000;
/// Round trips of one piece: see [`CALLS`].
const TRIPS: u64 = 100;
/// Pieces of one repetition. Their median counts. There are several because attaching takes longer than a
/// piece.
const PIECES: u64 = 15;
/// Rows of the log file, which has 32 KiB.
const ROWS: u32 = 1024;

/// What is attached to the tracepoint.
#[derive(Clone, Copy, PartialEq)]
enum Attached {
    /// Nothing, and system calls do not take the slow path of [`SlowEntry`].
    Untouched,
    Nothing,
    Program(BenchProgram),
    Row(Stamp),
    Generated,
    Ftrace,
    Perf,
}

/// A tracepoint that is measured.
struct MeasuredSite {
    point: BenchPoint,
    label: &'static str,
    tracepoint: &'static str,
}

const SYSTEM_CALL: MeasuredSite = MeasuredSite {
    point: BenchPoint::SystemCall,
    label: "system call",
    tracepoint: "raw_syscalls/sys_enter",
};
const SWITCH: MeasuredSite =
    MeasuredSite { point: BenchPoint::Switch, label: "switch", tracepoint: "sched/sched_switch" };

pub(crate) fn rows(context: &mut Context<'_>) -> Vec<Row> {
    match begin() {
        Ok(mut setup) => {
            setup.generated = Generated::at_system_calls();
            let mut rows = setup.rows(context, &SYSTEM_CALL);
            setup.generated = Generated::at_switches();
            rows.extend(setup.rows(context, &SWITCH));
            rows
        }
        Err(reason) => vec![Row::new("kernel: all rows", "ns", Err(reason))],
    }
}

/// The programs, tools and traffic that the measurements need.
struct KernelCostSetup {
    bench: Bench,
    generated: Result<Generated, Reason>,
    tracefs: Result<Tracefs, Reason>,
    processor: usize,
    echo: Echo,
    _batch: Batch,
    _pinned: Pinned,
}

fn begin() -> Result<KernelCostSetup, Reason> {
    let bench = Bench::load()?;
    let processor = processor::quietest();
    let pinned = Pinned::to(processor)?;
    let echo = Echo::start(Partner::SameAddressSpace, processor)?;
    let (tracefs, batch) = (Tracefs::open(), Batch::begin());
    let generated = Err(Reason::new("not loaded"));
    Ok(KernelCostSetup { bench, generated, tracefs, processor, echo, _batch: batch, _pinned: pinned })
}

impl KernelCostSetup {
    fn rows(&mut self, context: &mut Context<'_>, at: &MeasuredSite) -> Vec<Row> {
        use Attached::{Ftrace, Nothing, Perf, Program, Untouched};
        let is_switch = at.point == BenchPoint::Switch;
        // A variant that only one of the tracepoints has.
        let special = if is_switch { Attached::Row(Stamp::RunQueue) } else { Untouched };
        let variants = [
            special,
            Nothing,
            Program(BenchProgram::Empty),
            Program(BenchProgram::Clock),
            Attached::Row(Stamp::None),
            Attached::Row(Stamp::Hardware),
            Attached::Generated,
            Program(BenchProgram::RingBuffer),
            Program(BenchProgram::PerfOutput),
            Ftrace,
            Perf,
        ];
        let what = format!("kernel, {}", at.label);
        let rounds = context.rounds(70);
        let samples =
            interleave(&what, rounds, &variants, context.progress, |attached| self.measure(at, attached));
        let is_slow = SlowEntry::begin().map(drop);
        cost_rows(&Costs { at, samples: &samples, slow_entry: is_slow.as_ref().err() })
    }

    fn measure(&mut self, at: &MeasuredSite, attached: Attached) -> Result<f64, Reason> {
        if attached == Attached::Untouched {
            return Self::traffic_of(&mut self.echo, at);
        }
        // If this fails, the costs contain the path to the tracepoint, too. The note of the first row says so
        // once, so that the measurement goes on without it.
        let _slow = if at.point == BenchPoint::SystemCall { SlowEntry::begin().ok() } else { None };
        match attached {
            Attached::Untouched | Attached::Nothing => Self::traffic_of(&mut self.echo, at),
            Attached::Program(program) => {
                let _running = self.bench.attach(at.point, program)?;
                Self::traffic_of(&mut self.echo, at)
            }
            Attached::Row(stamp) => self.measure_row(at, stamp),
            Attached::Generated => {
                let generated = made(&mut self.generated)?;
                generated.record(self.processor, expected(at), || Self::traffic_of(&mut self.echo, at))
            }
            Attached::Ftrace => {
                let tracefs = self.tracefs.as_ref().map_err(Clone::clone)?;
                let _recording = Instance::recording(tracefs, &[at.tracepoint])?;
                Self::traffic_of(&mut self.echo, at)
            }
            Attached::Perf => {
                let tracefs = self.tracefs.as_ref().map_err(Clone::clone)?;
                let _recording = Recorded::begin(tracefs.tracepoint_id(at.tracepoint)?, self.processor)?;
                Self::traffic_of(&mut self.echo, at)
            }
        }
    }

    /// The cost with the whole handler attached. It fails if not every occurrence became a row.
    fn measure_row(&mut self, at: &MeasuredSite, stamp: Stamp) -> Result<f64, Reason> {
        let mut plan = Plan::new(Shape::KERNEL);
        let file = plan.file(FileSpec { entries: Entries::ALL, stamp, add: false, rows: ROWS })?;
        plan.route_event(EVENT, file)?;
        let area = self.bench.area(self.processor);
        plan.apply(area);
        let _running = self.bench.attach(at.point, BenchProgram::Row)?;
        let before = ring::written(&area.register(file).index);
        let cost = Self::traffic_of(&mut self.echo, at)?;
        let rows = ring::written(&area.register(file).index) - before;
        let expected = expected(at);
        // Other tasks on the processor add some rows. None may be missing, except those of one or two round
        // trips that needed no switch because another task ran in between.
        if rows + expected / 50 < expected {
            return Err(Reason::new(format!("{rows} rows were written where {expected} were expected")));
        }
        Ok(cost)
    }

    /// Nanoseconds for a system call, or for a switch with its share of the message that causes it.
    fn traffic_of(echo: &mut Echo, at: &MeasuredSite) -> Result<f64, Reason> {
        let pieces: Result<Vec<f64>, Reason> = (0..PIECES).map(|_| Self::piece(echo, at)).collect();
        median(&pieces?).ok_or_else(|| Reason::new("no piece was measured"))
    }

    fn piece(echo: &mut Echo, at: &MeasuredSite) -> Result<f64, Reason> {
        if at.point == BenchPoint::SystemCall {
            return Ok(timed(CALLS, system_calls));
        }
        // `timed` runs a closure without a result, so the result goes through a local.
        let mut done = Ok(());
        let cost = timed(2 * TRIPS, |_| done = (0..TRIPS).try_for_each(|_| echo.round_trip()));
        done?;
        Ok(cost)
    }
}

/// The number of events of one repetition.
fn expected(at: &MeasuredSite) -> u64 {
    PIECES * if at.point == BenchPoint::Switch { 2 * TRIPS } else { CALLS }
}

/// What was measured at a tracepoint, as rows.
struct Costs<'a> {
    at: &'a MeasuredSite,
    samples: &'a Samples<Attached>,
    /// Why system calls could not be made to take the slow path.
    slow_entry: Option<&'a Reason>,
}

impl Costs<'_> {
    fn row(&self, what: &str, unit: &'static str, samples: Result<Vec<f64>, Reason>) -> Row {
        Row::new(format!("kernel, {}: {what}", self.at.label), unit, samples)
    }

    /// The row of the cost that all others are compared with.
    fn base(&self) -> Row {
        let row = self.row("nothing attached", "ns", self.samples.of(Attached::Nothing));
        if self.at.point == BenchPoint::Switch {
            return row.note("a switch with its share of the pipe that causes it");
        }
        let way = self.samples.net(Attached::Nothing, Attached::Untouched).ok();
        row.note(slow_entry_note(way.and_then(|costs| median(&costs)), self.slow_entry))
    }

    fn ns(&self, what: &str, variant: Attached) -> Row {
        self.row(what, "ns", self.samples.net(variant, Attached::Nothing))
    }

    fn ratio(&self, what: &str, over: Attached, under: Attached, bar: Bar) -> Row {
        self.row(what, "ratio", self.samples.ratio(over, under, Attached::Nothing)).bar(bar)
    }

    /// A peer's cost, as a multiple of the cost of our row.
    fn peer(&self, what: &str, variant: Attached, limit: f64) -> Row {
        // No row can cost less than dispatch and clock, so no row can reach a greater quotient than this.
        let floor = self.samples.ratio(variant, Attached::Program(BenchProgram::Clock), Attached::Nothing);
        let of_floor = floor.ok().and_then(|ratios| median(&ratios)).unwrap_or(f64::NAN);
        self.ratio(&format!("{what} / row"), variant, Attached::Row(Stamp::Hardware), Bar::AtLeast(limit))
            .note(format!("a row that cost nothing but dispatch and clock would have {of_floor:.2}"))
    }
}

fn cost_rows(costs: &Costs<'_>) -> Vec<Row> {
    let clocked = Attached::Row(Stamp::Hardware);
    let [empty, clock] = [BenchProgram::Empty, BenchProgram::Clock].map(Attached::Program);
    let mut rows = vec![costs.base().note("taken off what follows")];
    rows.extend([
        costs.ns("empty program", empty),
        costs.ns("clock alone", clock).note("an empty program and bpf_ktime_get_ns"),
        costs.ns("row, four entries", Attached::Row(Stamp::None)).note("no time stamp"),
        costs.ns("row, five entries", clocked).note("monotonic clock, the whole handler"),
        costs.ratio("row / empty and clock", clocked, clock, Bar::AtMost(1.15)),
        costs
            .ns("generated event, 32 bytes", Attached::Generated)
            .note("two numbers of a schema, monotonic clock, recorded into a trace"),
        costs.ratio("generated event / row, five entries", Attached::Generated, clocked, Bar::AtMost(1.1)),
    ]);
    if costs.at.point == BenchPoint::Switch {
        let clocked_by_run_queue = Attached::Row(Stamp::RunQueue);
        rows.push(costs.ns("row, run-queue clock", clocked_by_run_queue));
        rows.push(costs.ratio("row, run-queue clock / empty", clocked_by_run_queue, empty, Bar::AtMost(1.3)));
    }
    rows.extend(peer_rows(costs));
    rows
}

fn peer_rows(costs: &Costs<'_>) -> [Row; 7] {
    use Attached::{Ftrace, Perf};
    let [ring, output] = [BenchProgram::RingBuffer, BenchProgram::PerfOutput].map(Attached::Program);
    [
        costs.ns("peer: BPF ring buffer", ring).note("32 bytes, monotonic clock, no wake-up"),
        costs.peer("BPF ring buffer", ring, 1.2),
        costs.ns("peer: bpf_perf_event_output", output),
        costs.ns("peer: ftrace", Ftrace).note("an instance of its own, local clock, overwriting"),
        costs.peer("ftrace", Ftrace, 2.0),
        costs.ns("peer: perf tracepoint", Perf).note("perf_event_open on this processor, overwriting"),
        costs.peer("perf tracepoint", Perf, 6.0),
    ]
}

/// What the cost of a system call has to do with the slow path of [`SlowEntry`], of which `way` is the
/// measured cost.
fn slow_entry_note(way: Option<f64>, refused: Option<&Reason>) -> String {
    match (refused, way) {
        (None, Some(way)) => format!(
            "includes {way:.0} ns of the kernel's slow system-call entry, which any use of this tracepoint switches on"
        ),
        (None, None) => {
            "includes the kernel's slow system-call entry, whose cost could not be measured".to_owned()
        }
        (Some(reason), _) => format!(
            "without the kernel's slow system-call entry, which the costs that follow therefore include: {reason}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_that_include_the_slow_entry_of_system_calls_say_so() {
        assert!(slow_entry_note(Some(61.7), None).starts_with("includes 62 ns of the kernel's slow"));
        assert!(slow_entry_note(None, None).contains("could not be measured"));
        let refused = Reason::new("slow system calls: no such call");
        let note = slow_entry_note(Some(0.3), Some(&refused));
        assert!(
            note.contains("costs that follow therefore include") && note.contains("no such call"),
            "{note}"
        );
    }
}
