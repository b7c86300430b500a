//! All processors log at once: does one processor disturb another (LOG-9; thesis §5.2.1, figure 5.3)?

use std::sync::Barrier;
use std::thread;

use mete_measure::Bar;
use mete_measure::interleave::{Samples, interleave, quotients};
use mete_measure::processor;
use mete_measure::reason::Reason;
use mete_measure::report::Row;
use mete_measure::statistics::median;

use super::loops::{self, timed};
use super::scheduler::{Logging, Scheduler};
use crate::context::Context;

/// Passes of a piece. A repetition has several pieces, and their median counts: most pieces are undisturbed,
/// and the beginnings and ends of the threads do not matter.
const PASSES: u64 = 30_000;
/// Pieces of a repetition: see [`PASSES`].
const PIECES: u64 = 15;
/// Passes before the first piece, which are not timed.
const WARM_UP: u64 = 20_000;

#[derive(Clone, Copy, PartialEq)]
struct ParallelVariant {
    at_once: bool,
    what: PassKind,
}

#[derive(Clone, Copy, PartialEq)]
enum PassKind {
    Nothing,
    Clock,
    Row,
}

pub(crate) fn rows(context: &mut Context<'_>) -> Vec<Row> {
    const NAME: &str = "parallel: row, all processors at once / one";
    let bar = Bar::AtMost(1.05);
    let processors = processor::allowed();
    if processors.len() < 2 {
        let reason = Reason::new("this machine has one processor");
        return vec![Row::new(NAME, "ratio", Err(reason)).bar(bar)];
    }
    let mut scheduler = match Scheduler::begin() {
        Ok(scheduler) => scheduler,
        Err(reason) => return vec![Row::new(NAME, "ratio", Err(reason)).bar(bar)],
    };
    let samples = measure(context, &mut scheduler, &processors);
    let cost = |at_once, what| {
        samples.net(ParallelVariant { at_once, what }, ParallelVariant { at_once, what: PassKind::Nothing })
    };
    let ratio = |what| quotients(&cost(true, what)?, &cost(false, what)?);
    let count = processors.len();
    vec![
        Row::new("parallel: row, one processor at a time", "ns", cost(false, PassKind::Row))
            .note("mean over the processors"),
        Row::new("parallel: row, all processors at once", "ns", cost(true, PassKind::Row))
            .note(format!("{count} processors; mean over them")),
        Row::new(NAME, "ratio", ratio(PassKind::Row)).bar(bar).note(floor(&ratio(PassKind::Clock))),
    ]
}

/// How much the processors disturb each other without any log.
fn floor(clock: &Result<Vec<f64>, Reason>) -> String {
    let median = clock.as_ref().ok().and_then(|ratios| median(ratios));
    median.map_or(String::new(), |median| {
        format!("a bare rdtsc, which shares nothing, has {median:.3} in the same run")
    })
}

fn measure(
    context: &mut Context<'_>,
    scheduler: &mut Scheduler,
    processors: &[usize],
) -> Samples<ParallelVariant> {
    let variants: Vec<_> = [PassKind::Nothing, PassKind::Clock, PassKind::Row]
        .into_iter()
        .flat_map(|what| [false, true].map(|at_once| ParallelVariant { at_once, what }))
        .collect();
    let rounds = context.rounds(50);
    interleave("all processors at once", rounds, &variants, context.progress, |variant| {
        let logging = if variant.what == PassKind::Row { Logging::Five } else { Logging::Disabled };
        // The rows of the warm-up count, too: the check compares with all rows that were written.
        let rows = (PIECES * PASSES + WARM_UP) * processors.len() as u64;
        // The reason why a thread could not be measured goes before the rows that are missing for it.
        let mut cost = Ok(0.0);
        let checked = scheduler.measured(logging, rows, || {
            cost = mean_cost(processors, variant);
            *cost.as_ref().unwrap_or(&f64::NAN)
        });
        cost.and(checked)
    })
}

/// Nanoseconds for a pass, averaged over the processors (thesis §5.2.1: "averaged over the processors").
fn mean_cost(processors: &[usize], variant: ParallelVariant) -> Result<f64, Reason> {
    let run = match variant.what {
        PassKind::Nothing => loops::nothing,
        PassKind::Clock => loops::clock,
        PassKind::Row => loops::row,
    };
    let costs: Vec<Result<f64, Reason>> = if variant.at_once {
        on_all(processors, run)
    } else {
        processors.iter().flat_map(|&processor| on_all(&[processor], run)).collect()
    };
    let sum: f64 = costs.into_iter().sum::<Result<f64, Reason>>()?;
    Ok(sum / processors.len() as f64)
}

/// Runs a loop on each of the processors at the same time.
fn on_all(processors: &[usize], run: fn(u64)) -> Vec<Result<f64, Reason>> {
    let barrier = &Barrier::new(processors.len());
    thread::scope(|scope| {
        let threads: Vec<_> = processors
            .iter()
            .map(|&processor| scope.spawn(move || on_one(processor, run, barrier)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked()))).collect()
    })
}

fn panicked() -> Reason {
    Reason::new("a thread of the measurement panicked")
}

/// The median of a pass's time on this processor, measured once all threads are ready.
fn on_one(processor: usize, run: fn(u64), barrier: &Barrier) -> Result<f64, Reason> {
    // After a failure, too, the thread comes to the barrier: the others wait for it there.
    let pinned = processor::pin(processor);
    // Not timed: the threads start one after the other.
    run(WARM_UP);
    barrier.wait();
    pinned?;
    let pieces: Vec<_> = (0..PIECES).map(|_| timed(PASSES, run)).collect();
    median(&pieces).ok_or_else(|| Reason::new("no piece was measured"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_that_a_thread_may_not_run_on_is_the_reason_and_the_others_are_measured() {
        let costs = on_all(&[processor::quietest(), 100_000], loops::nothing);
        assert!(costs[0].is_ok(), "{costs:?}");
        let reason = costs[1].as_ref().unwrap_err().to_string();
        assert!(reason.contains("processor 100000"), "{reason}");
    }
}
