//! How many bytes an event of the scheduler takes on the disk, in our traces and in perf's.

use std::fs;

use mete_measure::Bar;
use mete_measure::interleave::interleave;
use mete_measure::processor;
use mete_measure::reason::Reason;
use mete_measure::report::Row;

use super::perf_record::record_messages;
use super::pipe::{RECORDED, bench};
use crate::context::Context;
use crate::recording::ScratchRecording;
use crate::scratch::Scratch;

/// Enough messages to make the headers of files negligible.
const MESSAGES: u32 = 20_000;
#[derive(Clone, Copy, PartialEq)]
enum RecordedFile {
    Ours,
    Perfs,
}

pub(crate) fn rows(context: &mut Context<'_>) -> Vec<Row> {
    use RecordedFile::{Ours, Perfs};
    let processor = processor::quietest();
    let rounds = if context.options.is_quick { 1 } else { 6 };
    let samples = interleave("bytes on disk", rounds, &[Ours, Perfs], context.progress, |file| match file {
        Ours => ours(processor),
        Perfs => perfs(processor),
    });
    let row = |name: &str, file| Row::new(format!("size: {name}"), "bytes", samples.of(file));
    let ratio = samples.of(Ours).and_then(|ours| {
        let perfs = samples.of(Perfs)?;
        Ok(ours.iter().zip(&perfs).map(|(ours, perfs)| ours / perfs).collect())
    });
    vec![
        row("a switch or wake-up, recorded", Ours).note(
            "SCHEDOUT and SCHEDIN of each switch, TRY_TO_WAKEUP of each wake-up; all files of the trace",
        ),
        row("a switch or wake-up, perf", Perfs)
            .note("perf record of sched_switch and sched_waking; all of perf.data"),
        Row::new("size: recorded / perf", "ratio", ratio).bar(Bar::AtMost(0.5)),
    ]
}

fn ours(processor: usize) -> Result<f64, Reason> {
    let session = ScratchRecording::begin("scheduler", &RECORDED)?;
    bench(processor, MESSAGES, |_| Ok(()))?;
    let recorded = session.end()?;
    let mut events = 0u64;
    recorded.each(|next| {
        if let mete_trace::NamedItem::Event(seen) = next {
            // SCHEDIN and SCHEDOUT of a switch count as one event, as perf's sched_switch does.
            events += u64::from(matches!(seen.name(), "SCHEDIN" | "TRY_TO_WAKEUP"));
        }
    });
    per_event(recorded.bytes()?, events)
}

fn perfs(processor: usize) -> Result<f64, Reason> {
    let scratch = Scratch::new()?;
    let events = record_messages(scratch.path(), processor, MESSAGES)?;
    per_event(fs::metadata(scratch.path().join("data"))?.len(), events)
}

fn per_event(bytes: u64, events: u64) -> Result<f64, Reason> {
    if events < u64::from(MESSAGES) {
        return Err(Reason::new(format!("only {events} events were recorded")));
    }
    Ok(bytes as f64 / events as f64)
}
