//! The kernel's noise: how long a loop that should take a millisecond does take (KLogger paper, §10.1, figures 8
//! to 10).

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use super::cdf::Distribution;
use super::noise_page;
use crate::study::{StudyOptions, StudyResults};
use crate::trace::{INTERRUPTS, InterruptKind, Runs, Span, Spans, Usage};
use mete_base::progress::Progress;
use mete_bench::crew::now_ns;
use mete_bench::realtime::Realtime;
use mete_bench::recording::{Recorded, Session};
use mete_measure::processor::{self, Pinned};
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use mete_trace::NamedItem;

/// The time that an undisturbed iteration takes.
const AIM_NS: u64 = 1_000_000;
/// Iterations without a pause. They take a fifth of a second; then other tasks may run.
const STRETCH: usize = 200;
/// The pause between two stretches.
const PAUSE: Duration = Duration::from_millis(50);
/// The number of stretches, then the same for a quick run.
const STRETCHES: [usize; 2] = [40, 5];
/// The limit of the watchdog: five times the time of an undisturbed stretch.
const LIMIT: Duration = Duration::from_secs(1);
/// In a recorded trace, windows of an iteration's length stand for iterations. This is the greatest number of them.
const MOST_WINDOWS: u64 = 10_000_000;

/// One iteration, in times of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Iteration {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// The results: distributions of the length of iterations in microseconds.
#[derive(Debug, PartialEq)]
pub(super) struct Noise {
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

pub(crate) fn study(options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
    let noise = measure(STRETCHES[usize::from(options.is_quick)], progress);
    let mut report = Report::new("mete study noise");
    report.rows = rows(&noise);
    report.is_complete = !progress.is_cancelled();
    noise_page::study(report, noise.as_ref().ok())
}

fn measure(stretches: usize, progress: &mut dyn Progress) -> Result<Noise, Reason> {
    let processor = processor::quietest();
    let _pinned = Pinned::to(processor)?;
    // Before recording: interrupts during calibration are of no interest.
    let turns = calibrate();
    let interrupts = Session::begin("interrupt", &INTERRUPTS)?;
    let switches = Session::begin("scheduler", &["SCHEDIN", "SCHEDOUT"])?;
    let mut iterations = Vec::with_capacity(stretches * STRETCH);
    progress.begin("stretches of 200 ms", stretches as u64);
    for _ in 0..stretches {
        if progress.is_cancelled() {
            break;
        }
        stretch(turns, &mut iterations)?;
        std::thread::sleep(PAUSE);
        progress.step();
    }
    let (interrupts, switches) = (interrupts.end()?, switches.end()?);
    let spans = spans(&interrupts, processor as u32);
    let away = away(&switches, processor as u32);
    let lost = interrupts.lost() + switches.lost();
    let others = Usage::of(&switches, Runs::of_own_recording()).others_percent(|_| false);
    Ok(Noise { lost, others, ..noise(&iterations, &spans, &away) })
}

/// Runs one stretch of iterations at a real-time priority. Stops early if they take too long in total.
fn stretch(turns: u64, iterations: &mut Vec<Iteration>) -> Result<(), Reason> {
    // Each stretch has a guard of its own: between stretches this thread is an ordinary one.
    let _realtime = Realtime::begin(LIMIT)?;
    let end = now_ns() + LIMIT.as_nanos() as u64;
    for _ in 0..STRETCH {
        let from_ns = now_ns();
        count(turns);
        let to_ns = now_ns();
        // The vector has room for all iterations, so this does not allocate.
        iterations.push(Iteration { from_ns, to_ns });
        if to_ns > end {
            break;
        }
    }
    Ok(())
}

/// The paper's loop. Each turn reads a number from the stack, adds one, and writes it back.
#[inline(never)]
fn count(turns: u64) {
    let mut index = 0u64;
    while index < turns {
        index = black_box(index).wrapping_add(1);
        black_box(&mut index);
    }
}

/// The number of turns of the loop that take [`AIM_NS`] without disturbance, by the fastest of some tries.
fn calibrate() -> u64 {
    const TURNS: u64 = 100_000;
    let fastest = (0..50).map(|_| {
        let from_ns = now_ns();
        count(TURNS);
        now_ns() - from_ns
    });
    // The time is a divisor below, so it must not be 0.
    let ns = fastest.min().unwrap_or(AIM_NS).max(1);
    (TURNS * AIM_NS / ns).max(1)
}

fn spans(recorded: &Recorded, processor: u32) -> Vec<Span> {
    let (mut spans, mut all) = (Spans::default(), Vec::new());
    recorded.each(|next| all.extend(spans.next(&next).filter(|span| span.processor == processor)));
    all
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
fn noise(iterations: &[Iteration], spans: &[Span], away: &[(u64, u64)]) -> Noise {
    let pick = |is_wanted: fn(&Span) -> bool| -> Vec<(u64, u64)> {
        union(spans.iter().filter(|span| is_wanted(span)).map(|span| (span.from_ns, span.to_ns)).collect())
    };
    let (timer, all) = (pick(|span| span.kind == InterruptKind::Timer), pick(|_| true));
    let both = union([&all[..], away].concat());
    let without = |taken: &[(u64, u64)]| {
        let left = iterations.iter().map(|of| (of.to_ns - of.from_ns - within(taken, *of)) as f64 / 1e3);
        Distribution::of(left.collect())
    };
    // A span that lies only partly in an iteration is not counted.
    let seen = spans
        .iter()
        .filter(|span| iterations.iter().any(|of| of.from_ns <= span.from_ns && span.to_ns <= of.to_ns));
    let seen: Vec<&Span> = seen.collect();
    Noise {
        noisy: without(&[]),
        without_timer: without(&timer),
        clean: without(&all),
        alone: without(&both),
        interrupts: InterruptKind::ALL.map(|kind| seen.iter().filter(|span| span.kind == kind).count()),
        others: 0.0,
        lost: 0,
    }
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

/// The study of a recorded trace: how much of each millisecond interrupts took on each processor.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = Recorded::open(directory)?;
    recorded.needs("interrupt", &INTERRUPTS)?;
    let (mut spans, mut all) = (Spans::default(), Vec::new());
    recorded.each(|next| all.extend(spans.next(&next)));
    let mut report = Report::new(format!("mete study noise --trace {}", directory.display()));
    let mut curves = Vec::new();
    for processor in 0..recorded.processors() as u32 {
        let own: Vec<_> = all.iter().filter(|span| span.processor == processor).collect();
        let taken = union(own.iter().map(|span| (span.from_ns, span.to_ns)).collect());
        let us = windows(&taken);
        let name = format!("processor {processor}");
        let note = super::page::loss(recorded.lost());
        report
            .rows
            .push(Row::new(format!("noise: {name}, of a millisecond"), "us", Ok(us.clone())).note(note));
        curves.push((name, Distribution::of(us)));
    }
    Ok(noise_page::of_trace(report, &curves))
}

/// The microseconds that were taken of each millisecond, from the first span on.
fn windows(taken: &[(u64, u64)]) -> Vec<f64> {
    let (Some(first), Some(last)) = (taken.first(), taken.last()) else { return Vec::new() };
    let count = ((last.1 - first.0) / AIM_NS).min(MOST_WINDOWS);
    let windows = (0..count).map(|nth| {
        let from_ns = first.0 + nth * AIM_NS;
        Iteration { from_ns, to_ns: from_ns + AIM_NS }
    });
    windows.map(|window| within(taken, window) as f64 / 1e3).collect()
}

fn rows(noise: &Result<Noise, Reason>) -> Vec<Row> {
    let us = |of: fn(&Noise) -> &Distribution| {
        noise.as_ref().map(|noise| of(noise).values().to_vec()).map_err(Clone::clone)
    };
    let spread = |of: fn(&Noise) -> &Distribution| {
        let spread = noise.as_ref().map(|noise| noise_page::spread(of(noise)));
        spread.map(|spread| spread.into_iter().collect()).map_err(Clone::clone)
    };
    let loss = noise.as_ref().map_or_else(|_| String::new(), |noise| super::page::loss(noise.lost));
    vec![
        Row::new("noise: iteration", "us", us(|noise| &noise.noisy))
            .note("a loop of additions on the stack, at a real-time priority")
            .note(loss),
        Row::new("noise: without the timer", "us", us(|noise| &noise.without_timer)),
        Row::new("noise: without all interrupts", "us", us(|noise| &noise.clean)),
        Row::new("noise: without interrupts and others' turns", "us", us(|noise| &noise.alone)),
        Row::new("noise: spread, as it is", "percent", spread(|noise| &noise.noisy))
            .note("from the first to the 99th percentile, of the median"),
        Row::new("noise: spread without all interrupts", "percent", spread(|noise| &noise.clean)),
        Row::new(
            "noise: others' share",
            "percent",
            noise.as_ref().map(|noise| vec![noise.others]).map_err(Clone::clone),
        )
        .note("of all processors"),
    ]
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
        let found = noise(&[iteration(0), iteration(1_000_000)], &spans, &[(1_500_000, 1_600_000)]);
        assert_eq!(found.noisy.values(), [1_000.0, 1_000.0]);
        assert_eq!(found.without_timer.values(), [989.0, 999.0]);
        assert_eq!(found.clean.values(), [959.0, 999.0]);
        assert_eq!(found.alone.values(), [899.0, 959.0]);
        assert_eq!(found.interrupts, [1, 1, 1, 0], "the one on the border is in neither");
    }

    #[test]
    fn klog_9_of_a_trace_each_millisecond_says_what_interrupts_took() {
        let taken = union(vec![(2_500_000, 2_600_000), (0, 10_000), (5_000, 20_000), (3_000_000, 3_000_001)]);
        assert_eq!(taken.len(), 3);
        assert_eq!(windows(&taken), [20.0, 0.0, 100.0]);
        assert_eq!(windows(&[]), [0.0; 0]);
    }

    #[test]
    fn klog_9_a_stretch_of_the_loop_has_its_end() {
        let mut iterations = Vec::new();
        match stretch(1, &mut iterations) {
            Ok(()) => assert_eq!(iterations.len(), STRETCH),
            Err(reason) => println!("SKIPPED: {reason}"),
        }
    }
}
