//! User space: a probe that is off, a probe that is on, and other facilities for the same purpose.

mod locked;
pub mod loops;
pub mod lttng;
mod parallel;
pub mod scheduler;
mod tracing;
#[cfg_attr(not(feature = "tracy"), path = "no_tracy.rs")]
mod tracy;
pub mod writer;

use mete_measure::Bar;
use mete_measure::interleave::{Samples, interleave, quotients};
use mete_measure::processor::{self, Pinned};
use mete_measure::reason::{Reason, made};
use mete_measure::report::Row;
use mete_measure::statistics::median;

use crate::context::Context;
use loops::{After, Work};
use scheduler::{Logging, ROWS, Scheduler};

pub use loops::timed;
pub(crate) use parallel::rows as parallel_rows;

/// Passes of one repetition of a loop whose body takes some nanoseconds: about a millisecond.
const PASSES: u64 = 50_000;
/// Fewer passes where every event stays in memory, at 32 bytes each.
const KEPT_PASSES: u64 = 10_000;
/// The duration of the work that a row is added to.
const WORK_NS: f64 = 20.0;

/// A probe, a row and its peers, on one processor.
pub(crate) fn rows(context: &mut Context<'_>) -> Vec<Row> {
    match begin() {
        Ok((_pinned, mut scheduler)) => own(context, &mut scheduler),
        Err(reason) => vec![Row::new("user: all rows", "ns", Err(reason))],
    }
}

fn begin() -> Result<(Pinned, Scheduler), Reason> {
    Ok((Pinned::to(processor::quietest())?, Scheduler::begin()?))
}

fn own(context: &mut Context<'_>, scheduler: &mut Scheduler) -> Vec<Row> {
    const PARTS: [fn(&mut Context<'_>, &mut Scheduler) -> Vec<Row>; 5] = [
        disabled,
        costs,
        |context, scheduler| in_work(context, scheduler, Work::Latency, "latency-bound"),
        |context, scheduler| in_work(context, scheduler, Work::Hash, "hashing"),
        |context, scheduler| in_work(context, scheduler, Work::Throughput, "throughput-bound"),
    ];
    let mut rows = Vec::new();
    for part in PARTS {
        if !context.is_cancelled() {
            rows.extend(part(context, scheduler));
        }
    }
    rows
}

/// Loops with and without a probe that is off.
#[derive(Clone, Copy, PartialEq)]
enum OffLoop {
    Chain,
    ProbedChain,
    Empty,
    Probes,
}

fn disabled(context: &mut Context<'_>, scheduler: &mut Scheduler) -> Vec<Row> {
    const VARIANTS: [OffLoop; 4] = [OffLoop::Chain, OffLoop::ProbedChain, OffLoop::Empty, OffLoop::Probes];
    let rounds = context.rounds(150);
    let samples = interleave("probe, disabled", rounds, &VARIANTS, context.progress, |variant| {
        let run = match variant {
            OffLoop::Chain => loops::eight_steps,
            OffLoop::ProbedChain => loops::eight_probed_steps,
            OffLoop::Empty => loops::eight_times_nothing,
            OffLoop::Probes => loops::eight_probes,
        };
        // Each pass has eight probes, or eight times nothing.
        scheduler.measured(Logging::Disabled, 0, || timed(PASSES, run) / 8.0)
    });
    let row = |name: &str, with, without| {
        Row::new(format!("user: {name}"), "ns", samples.net(with, without)).bar(Bar::Below(0.1))
    };
    vec![
        row("disabled probe in work", OffLoop::ProbedChain, OffLoop::Chain)
            .note("against the same chain of multiplications without a probe"),
        row("disabled probe in an empty loop", OffLoop::Probes, OffLoop::Empty)
            .note("eight probes and nothing else, against nothing"),
    ]
}

/// The variants that are compared with a row, and the row itself.
#[derive(Clone, Copy, PartialEq)]
enum UserVariant {
    Nothing,
    Disabled,
    OurRow(Logging),
    Clock,
    Locked,
    Tracing,
    LttngNothing,
    Lttng,
    Tracy,
}

fn costs(context: &mut Context<'_>, scheduler: &mut Scheduler) -> Vec<Row> {
    use UserVariant::*;
    const VARIANTS: [UserVariant; 12] = [
        Nothing,
        Disabled,
        Clock,
        OurRow(Logging::NoEntry),
        OurRow(Logging::One),
        OurRow(Logging::Four),
        OurRow(Logging::Five),
        Locked,
        Tracing,
        LttngNothing,
        Lttng,
        Tracy,
    ];
    let mut lttng = lttng::Peer::start(processor::quietest());
    let mut tracy = tracy::Peer::start();
    let locked = locked::LockedLog::new();
    let rounds = context.rounds(100);
    let samples = interleave("row, with its peers", rounds, &VARIANTS, context.progress, |variant| {
        let run = |run: fn(u64)| timed(PASSES, run);
        match variant {
            Nothing => Ok(run(loops::nothing)),
            Disabled => scheduler.measured(Logging::Disabled, 0, || run(loops::row)),
            Clock => Ok(run(loops::clock)),
            OurRow(logging) => scheduler.measured(logging, PASSES, || run(loops::row)),
            // The portable handler needs no scheduler: it writes into a log of its own.
            Locked => {
                locked.as_ref().map(|log| timed(PASSES, |times| log.rows(times))).map_err(Reason::clone)
            }
            Tracing => Ok(tracing::with_ring(|| run(tracing::events))),
            LttngNothing => made(&mut lttng)?.ask("none", PASSES),
            Lttng => made(&mut lttng)?.ask("row", PASSES),
            Tracy => made(&mut tracy)?.ask(KEPT_PASSES),
        }
    });
    cost_rows(&samples)
}

fn cost_rows(samples: &Samples<UserVariant>) -> Vec<Row> {
    use UserVariant::*;
    let five = OurRow(Logging::Five);
    let ns = |name: &str, variant| Row::new(format!("user: {name}"), "ns", samples.net(variant, Nothing));
    // LTTng's loop is in a C program, so it is compared with an empty loop of that program.
    let lttng = samples.net(Lttng, LttngNothing);
    let bare = samples.net(OurRow(Logging::NoEntry), Nothing).ok().and_then(|ns| median(&ns));
    let floor =
        bare.map_or(String::new(), |ns| format!("{ns:.2} ns of it to decide and to count, without an entry"));

    let ratio = |name: &str, ratio| Row::new(format!("user: {name}"), "ratio", ratio);
    vec![
        Row::new("user: empty loop", "ns", samples.of(Nothing)).note("taken off what follows"),
        ns("disabled probe", Disabled).note("the very loop that is patched for the rows below"),
        ns("bare rdtsc", Clock),
        ns("row, no entry", OurRow(Logging::NoEntry)).note("the occurrence is counted, nothing is written"),
        ns("row, one entry", OurRow(Logging::One)),
        ns("row, four entries", OurRow(Logging::Four))
            .bar(Bar::AtMost(3.0))
            .note("no time stamp")
            .note(floor),
        ns("row, five entries", five).note(format!("hardware time stamp; a log file of {ROWS} rows")),
        ratio("row, five entries / bare rdtsc", samples.ratio(five, Clock, Nothing)).bar(Bar::AtMost(1.15)),
        ns("row, five entries, locked fallback", Locked).note("where restartable sequences are missing"),
        ns("peer: Rust tracing", Tracing)
            .note("three integers and a time-stamp counter into a ring; subscriber of the thread"),
        Row::new("user: peer: LTTng-UST", "ns", lttng.clone()).note("overwrite mode, same fields"),
        ratio(
            "LTTng-UST / row, five entries",
            lttng.and_then(|lttng| quotients(&lttng, &samples.net(five, Nothing)?)),
        )
        .bar(Bar::AtLeast(6.0)),
        ns("peer: Tracy client", Tracy).note(tracy::Peer::NOTE),
    ]
}

fn in_work(context: &mut Context<'_>, scheduler: &mut Scheduler, kind: Work, name: &str) -> Vec<Row> {
    let turns = loops::calibrate(kind, WORK_NS);
    let rounds = context.rounds(80);
    const VARIANTS: [After; 3] = [After::Nothing, After::Clock, After::Row];
    let samples = interleave("row in work", rounds, &VARIANTS, context.progress, |after| {
        let (logging, rows) = match after {
            After::Row => (Logging::Five, PASSES),
            _ => (Logging::Disabled, 0),
        };
        scheduler.measured(logging, rows, || timed(PASSES, loops::working(kind, after, turns)))
    });
    let clock = samples.net(After::Clock, After::Nothing).ok().and_then(|added| median(&added));
    let floor = clock.map_or(String::new(), |ns| format!("a bare rdtsc in its place adds {ns:.2} ns"));
    vec![
        Row::new(format!("user: work, {name}"), "ns", samples.of(After::Nothing))
            .note(format!("{WORK_NS} ns were aimed at; {}", describe(kind))),
        Row::new(format!("user: row added to work, {name}"), "ns", samples.net(After::Row, After::Nothing))
            .bar(Bar::AtMost(3.0))
            .note("five entries with hardware time stamp")
            .note(floor),
    ]
}

fn describe(kind: Work) -> &'static str {
    match kind {
        Work::Latency => "a chain of multiplications",
        Work::Hash => "the standard library's keyed hash over some words",
        Work::Throughput => "four chains of cheap operations that leave few of the processor's units idle",
    }
}
