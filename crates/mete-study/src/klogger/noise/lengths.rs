//! How long iterations take, with and without what interrupts them.

use std::time::Duration;

use mete_base::progress::Progress;
use mete_bench::recording::{Recorded, ScratchRecording};
use mete_measure::Reason;
use mete_measure::processor::{self, Pinned};
use mete_trace::NamedItem;

use super::iterations::{self, AIM_NS, Iteration, STRETCH};
use crate::klogger::cdf::Distribution;
use crate::trace::{INTERRUPTS, InterruptKind, Runs, Span, Spans, Usage};

/// The pause between two stretches.
const PAUSE: Duration = Duration::from_millis(50);
/// In a recorded trace, windows of an iteration's length stand for iterations. This is the greatest number of
/// them.
const MOST_WINDOWS: u64 = 10_000_000;

/// The results: distributions of the length of iterations in microseconds.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Lengths {
    pub noisy: Distribution,
    /// The length without the direct overhead of the timer.
    pub without_timer: Distribution,
    /// The length without the direct overhead of all interrupts.
    pub clean: Distribution,
    /// The same without the times when other tasks ran.
    pub alone: Distribution,
    /// The number of interrupts of each kind.
    pub interrupts: [usize; 4],
    /// Percent of all processors' time that other processes used.
    pub others: f64,
    /// Events that the trace has lost.
    pub lost: u64,
}

/// Runs and records this number of stretches of iterations, with a real-time priority on one processor. Stops
/// early when `progress` says so.
pub(super) fn measure(stretches: usize, progress: &mut dyn Progress) -> Result<Lengths, Reason> {
    let processor = processor::quietest();
    let _pinned = Pinned::to(processor)?;
    // Before recording: interrupts during calibration are of no interest.
    let turns = iterations::calibrate();
    let interrupts = ScratchRecording::begin("interrupt", &INTERRUPTS)?;
    let switches = ScratchRecording::begin("scheduler", &["SCHEDIN", "SCHEDOUT"])?;
    let iterations = run(stretches, turns, progress)?;
    let (interrupts, switches) = (interrupts.end()?, switches.end()?);
    let mut spans = Spans::of(&interrupts);
    spans.retain(|span| span.processor == processor as u32);
    let away = away(&switches, processor as u32);
    let lost = interrupts.lost() + switches.lost();
    let others = Usage::of(&switches, Runs::of_own_recording()).others_percent(|_| false);
    Ok(Lengths { lost, others, ..lengths(&iterations, &spans, &away) })
}

fn run(stretches: usize, turns: u64, progress: &mut dyn Progress) -> Result<Vec<Iteration>, Reason> {
    let mut all = Vec::with_capacity(stretches * STRETCH);
    progress.begin("stretches of 200 ms", stretches as u64);
    for _ in 0..stretches {
        if progress.is_cancelled() {
            break;
        }
        iterations::stretch(turns, &mut all)?;
        std::thread::sleep(PAUSE);
        progress.step();
    }
    Ok(all)
}

/// The times when another task had the processor: from a SCHEDOUT of this thread to its next SCHEDIN.
fn away(recorded: &Recorded, processor: u32) -> Vec<(u64, u64)> {
    let own = rustix::thread::gettid().as_raw_nonzero().get();
    let (mut left, mut all) = (None, Vec::new());
    recorded.each(|next| match next {
        NamedItem::Event(seen) if seen.processor == processor && seen.pid("pid") == own => {
            match seen.name() {
                "SCHEDOUT" => left = Some(seen.time_ns),
                _ => all.extend(left.take().map(|from_ns| (from_ns, seen.time_ns))),
            }
        }
        NamedItem::Event(_) => {}
        NamedItem::Lost { .. } => left = None,
    });
    all
}

/// Subtracts from each iteration the interrupts and absences that lie in it.
fn lengths(iterations: &[Iteration], spans: &[Span], away: &[(u64, u64)]) -> Lengths {
    let timer = taken(spans.iter().filter(|span| span.kind == InterruptKind::Timer));
    let all = taken(spans);
    let both = union([&all[..], away].concat());
    let seen: Vec<&Span> = spans.iter().filter(|span| is_seen(span, iterations)).collect();
    Lengths {
        noisy: without(iterations, &[]),
        without_timer: without(iterations, &timer),
        clean: without(iterations, &all),
        alone: without(iterations, &both),
        interrupts: InterruptKind::ALL.map(|kind| seen.iter().filter(|span| span.kind == kind).count()),
        ..Lengths::default()
    }
}

/// Whether a span counts. One that lies only partly in an iteration does not.
fn is_seen(span: &Span, iterations: &[Iteration]) -> bool {
    iterations.iter().any(|of| of.from_ns <= span.from_ns && span.to_ns <= of.to_ns)
}

/// The length of the iterations without what is taken.
fn without(iterations: &[Iteration], taken: &[(u64, u64)]) -> Distribution {
    let left = iterations.iter().map(|of| (of.to_ns - of.from_ns - within(taken, *of)) as f64 / 1e3);
    Distribution::of(left.collect())
}

/// From the first to the 99th percentile, in percent of the median.
pub(super) fn spread(of: &Distribution) -> Option<f64> {
    let [low, half, high] = [0.01, 0.5, 0.99].map(|part| of.quantile(part));
    Some(100.0 * (high? - low?) / half?)
}

/// The times of these spans without overlap, in order.
pub(super) fn taken<'a>(spans: impl IntoIterator<Item = &'a Span>) -> Vec<(u64, u64)> {
    union(spans.into_iter().map(|span| (span.from_ns, span.to_ns)).collect())
}

/// The union of these spans of time as spans without overlap, in order.
fn union(mut spans: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    spans.sort_unstable();
    let mut all: Vec<(u64, u64)> = Vec::new();
    for (from, to) in spans {
        match all.last_mut() {
            // Spans are sorted by their beginning, so only the last one can overlap.
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
    all
}

/// How much of an iteration these spans of time take.
fn within(taken: &[(u64, u64)], of: Iteration) -> u64 {
    // `taken` is a union: its spans are in order and do not overlap.
    let first = taken.partition_point(|(_, to)| *to <= of.from_ns);
    let own = taken[first..].iter().take_while(|(from, _)| *from < of.to_ns);
    own.map(|(from, to)| to.min(&of.to_ns) - from.max(&of.from_ns)).sum()
}

/// The microseconds that were taken of each millisecond, from the first span on.
pub(super) fn windows(taken: &[(u64, u64)]) -> Vec<f64> {
    let (Some(first), Some(last)) = (taken.first(), taken.last()) else { return Vec::new() };
    let count = ((last.1 - first.0) / AIM_NS).min(MOST_WINDOWS);
    let windows = (0..count).map(|nth| {
        let from_ns = first.0 + nth * AIM_NS;
        Iteration { from_ns, to_ns: from_ns + AIM_NS }
    });
    windows.map(|window| within(taken, window) as f64 / 1e3).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_noise_is_an_iteration_less_what_interrupts_it() {
        let iteration = |from_ns| Iteration { from_ns, to_ns: from_ns + 1_000_000 };
        let span = |kind, from_ns, to_ns| Span { kind, processor: 0, from_ns, to_ns };
        let spans = [
            span(InterruptKind::Timer, 100_000, 110_000),
            span(InterruptKind::Soft, 120_000, 150_000),
            // This one lies within the soft interrupt, and must not be subtracted twice.
            span(InterruptKind::Device, 130_000, 140_000),
            // Half of this one belongs to the next iteration.
            span(InterruptKind::Timer, 999_000, 1_001_000),
        ];
        let found = lengths(&[iteration(0), iteration(1_000_000)], &spans, &[(1_500_000, 1_600_000)]);
        assert_eq!(found.noisy.values(), [1_000.0, 1_000.0]);
        assert_eq!(found.without_timer.values(), [989.0, 999.0]);
        assert_eq!(found.clean.values(), [959.0, 999.0]);
        assert_eq!(found.alone.values(), [899.0, 959.0]);
        assert_eq!(found.interrupts, [1, 1, 1, 0], "the one on the border is in neither");
    }

    #[test]
    fn klog_9_of_a_trace_each_millisecond_says_what_interrupts_took() {
        let spans = union(vec![(2_500_000, 2_600_000), (0, 10_000), (5_000, 20_000), (3_000_000, 3_000_001)]);
        assert_eq!(spans.len(), 3);
        assert_eq!(windows(&spans), [20.0, 0.0, 100.0]);
        assert_eq!(windows(&[]), [0.0; 0]);
    }
}
