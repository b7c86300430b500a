//! Records a million events a second on all processors: whether events are lost, and how much time the flush
//! threads take.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mete_measure::Bar;
use mete_measure::interleave::interleave;
use mete_measure::processor;
use mete_measure::reason::{Reason, made};
use mete_measure::report::Row;
use mete_trace::layout::DEFAULT_BYTES;

use super::generated::Generated;
use crate::context::Context;
use crate::crew::{Crew, MemberWords, now_ns, sleep_ns};
use crate::traffic::system_calls;

/// The rate of all processors together.
const EVENTS_A_SECOND: u64 = 1_000_000;
/// In each portion of time, a member makes its part of the events of a millisecond. In between it sleeps.
const PORTION_NS: u64 = 1_000_000;
/// The number of repetitions and the length of each; then the same for a quick run.
const ROUNDS: [(usize, Duration); 2] = [(9, Duration::from_secs(2)), (6, Duration::from_millis(200))];
/// The least part of the rate. Below it the machine was too busy with other work for a verdict.
const LEAST: f64 = 0.9;
/// The place of a member's shared word with the number of system calls in a portion.
const CALLS: usize = 0;

/// The results of one repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct SustainedResult {
    flush_percent: f64,
    lost: f64,
    rate: f64,
}

pub(crate) fn rows(context: &mut Context<'_>) -> Vec<Row> {
    let mut generated = Generated::at_system_calls();
    let mut found = Vec::new();
    let (rounds, time) = ROUNDS[usize::from(context.options.is_quick)];
    let shares = interleave("a million events a second", rounds, &[()], context.progress, |()| {
        let of = measure(made(&mut generated)?, time)?;
        found.push(of);
        Ok(of.flush_percent)
    });
    // `interleave` does not count the first round either.
    let of =
        |part: fn(&SustainedResult) -> f64| shares.of(()).map(|_| found.iter().skip(1).map(part).collect());
    vec![
        Row::new("record: flush threads at a million events a second", "percent", shares.of(()))
            .bar(Bar::Below(6.0))
            .note(format!(
                "of one processor, all threads together; 32-byte events, buffers at their default of {} MiB",
                DEFAULT_BYTES >> 20
            )),
        Row::new("record: lost at a million events a second", "events", of(|found| found.lost))
            .bar_of_each(Bar::AtMost(0.0)),
        Row::new("record: events a second", "1/s", of(|found| found.rate)).note("what was reached"),
    ]
}

fn measure(generated: &mut Generated, time: Duration) -> Result<SustainedResult, Reason> {
    let places: Vec<_> = processor::allowed().into_iter().map(Some).collect();
    let calls = EVENTS_A_SECOND * PORTION_NS / 1_000_000_000 / places.len() as u64;
    let crew = Crew::start(&places, 1, call)?;
    for nth in 0..places.len() {
        crew.words(nth)[CALLS].store(calls, Ordering::Release);
    }
    let (before, begin) = (generated.totals()?, Instant::now());
    generated.attached(|| {
        crew.go();
        std::thread::sleep(time);
        crew.stop();
        Ok(0.0)
    })?;
    let (after, passed) = (generated.totals()?, begin.elapsed());
    let records = (after.records - before.records) as f64;
    let found = SustainedResult {
        flush_percent: 100.0 * (after.flush_ns - before.flush_ns) as f64 / passed.as_nanos() as f64,
        lost: (after.lost - before.lost) as f64,
        rate: records / passed.as_secs_f64(),
    };
    if found.rate < LEAST * EVENTS_A_SECOND as f64 {
        return Err(Reason::new(format!("the machine made only {:.0} events a second", found.rate)));
    }
    Ok(found)
}

/// Makes the system calls of each portion, and of all portions that are late.
fn call(member: &MemberWords<'_>) {
    let calls = member.words()[CALLS].load(Ordering::Acquire);
    let begin = now_ns();
    let mut portions = 0u64;
    while !member.is_over() {
        // Wrapping operations cannot panic: a member of a crew must not.
        let due = now_ns().wrapping_sub(begin) / PORTION_NS;
        while portions < due && !member.is_over() {
            system_calls(calls);
            portions = portions.wrapping_add(1);
        }
        // Half a portion, so that a late wake-up delays the next portion by less than its length.
        sleep_ns(PORTION_NS / 2);
    }
}
