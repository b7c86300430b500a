//! The costs of single timer interrupts, from a recording and from programs that watch the clock meanwhile.

use std::fs;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_bench::crew::Crew;
use mete_bench::recording::{Recorded, ScratchRecording};
use mete_bench::watch::{self, Gap};
use mete_measure::{Reason, processor};
use mete_trace::NamedItem;

use crate::klogger::cdf::Distribution;
use crate::klogger::pause;
use crate::trace::{InterruptKind, Span, Spans};

/// The events that are recorded.
pub(super) const EVENTS: [&str; 4] = ["TIMER_ENTRY", "TIMER_EXIT", "SOFTIRQ_ENTRY", "SOFTIRQ_EXIT"];

/// The number of gaps that each program keeps. Some hypervisors cause thousands of small gaps in a second.
const GAPS: usize = 1 << 17;

/// What the timer interrupts cost, in nanoseconds.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TickCosts {
    /// The time from the beginning to the end of the handler.
    pub handler: Distribution,
    /// The time of the soft interrupts that follow the handler at once.
    pub soft: Distribution,
    /// How long the program did not run because of one tick, with recording.
    pub away: Distribution,
    /// Timer interrupts a second on a busy processor.
    pub rate: f64,
    /// The kernel's name of the clock that tells the time.
    pub clock_source: String,
    /// Events that the trace has lost.
    pub lost: u64,
}

impl TickCosts {
    pub(super) fn measure(time: Duration, progress: &mut dyn Progress) -> Result<TickCosts, Reason> {
        let places: Vec<_> = processor::allowed().into_iter().map(Some).collect();
        let session = ScratchRecording::begin("interrupt", &EVENTS)?;
        // The switches have a recording of their own, because each recording has the events of one schema.
        let switching = ScratchRecording::begin("scheduler", &["SCHEDOUT"])?;
        let crew = Crew::start(&places, watch::words(GAPS), watch::watch)?;
        crew.go();
        let passed = pause(time, progress);
        crew.stop();
        let (recorded, switched) = (session.end()?, switching.end()?);
        progress.step();
        let gaps: Vec<_> = (0..places.len()).map(|nth| watch::gaps(crew.words(nth))).collect();
        let watched = places.iter().flatten().map(|&processor| processor as u32).zip(gaps).collect();
        let spans = Spans::of(&recorded);
        let rate = timers(&spans).count() as f64 / passed.as_secs_f64() / places.len() as f64;
        let costs = costs(&spans, &undisturbed(watched, &switches(&switched)));
        Ok(TickCosts { rate, clock_source: clock_source(), lost: recorded.lost(), ..costs })
    }

    /// The handlers of a trace. Nothing else is known of it.
    pub(super) fn of_handlers(recorded: &Recorded) -> TickCosts {
        let handler = timers(&Spans::of(recorded)).map(|span| span.ns() as f64).collect();
        TickCosts { handler: Distribution::of(handler), ..TickCosts::default() }
    }

    /// Percent of a busy processor's time that ticks take; `None` if no tick was seen.
    pub(super) fn processor_percent(&self) -> Option<f64> {
        self.away.half().map(|ns| 100.0 * ns * self.rate / 1e9)
    }
}

fn timers(spans: &[Span]) -> impl Iterator<Item = &Span> {
    spans.iter().filter(|span| span.kind == InterruptKind::Timer)
}

fn clock_source() -> String {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let text = fs::read_to_string(path).unwrap_or_default();
    if text.is_empty() { "unknown".to_owned() } else { text.trim().to_owned() }
}

/// The processor and the time of each switch from one process to another.
fn switches(recorded: &Recorded) -> Vec<(u32, u64)> {
    let mut all = Vec::new();
    recorded.each(|next| {
        if let NamedItem::Event(seen) = next {
            all.push((seen.processor, seen.time_ns));
        }
    });
    all
}

/// The gaps in which no other process ran.
fn undisturbed(mut watched: Vec<(u32, Vec<Gap>)>, switches: &[(u32, u64)]) -> Vec<(u32, Vec<Gap>)> {
    for (processor, gaps) in &mut watched {
        let own = switches.iter().filter(|(of, _)| of == processor);
        let times: Vec<u64> = own.map(|(_, time_ns)| *time_ns).collect();
        gaps.retain(|gap| {
            // The events of a processor come in order of time.
            let next = times.partition_point(|time_ns| *time_ns < gap.from_ns);
            times.get(next).is_none_or(|time_ns| *time_ns > gap.to_ns)
        });
    }
    watched
}

/// The costs of the timer interrupts in those gaps of the programs that contain only soft interrupts in
/// addition.
fn costs(spans: &[Span], watched: &[(u32, Vec<Gap>)]) -> TickCosts {
    let (mut handler, mut soft, mut away) = (Vec::new(), Vec::new(), Vec::new());
    for (processor, gaps) in watched {
        let own: Vec<&Span> = spans.iter().filter(|span| span.processor == *processor).collect();
        for gap in gaps {
            let Some((timer_ns, soft_ns)) = tick_in(gap, &own) else { continue };
            handler.push(timer_ns as f64);
            away.push(gap.ns() as f64);
            if soft_ns > 0 {
                soft.push(soft_ns as f64);
            }
        }
    }
    let [handler, soft, away] = [handler, soft, away].map(Distribution::of);
    TickCosts { handler, soft, away, ..TickCosts::default() }
}

/// The time of the one timer interrupt in a gap, and that of all soft interrupts there. `own` are the
/// interrupts of the gap's processor. A gap with several timer interrupts does not show the cost of one.
fn tick_in(gap: &Gap, own: &[&Span]) -> Option<(u64, u64)> {
    let first = own.partition_point(|span| span.to_ns < gap.from_ns);
    let within = own[first..].iter().take_while(|span| span.to_ns <= gap.to_ns);
    let (timers, others): (Vec<&Span>, Vec<&Span>) =
        within.partition(|span| span.kind == InterruptKind::Timer);
    let [timer] = timers[..] else { return None };
    Some((timer.ns(), others.iter().map(|span| span.ns()).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_gaps_in_which_another_process_ran_are_left_out() {
        let gap = |from_ns| Gap { from_ns, to_ns: from_ns + 100 };
        let watched = vec![(0, vec![gap(100), gap(500)]), (1, vec![gap(100), gap(900)])];
        let left = undisturbed(watched, &[(0, 90), (0, 520), (1, 110), (1, 1_001)]);
        assert_eq!(left, [(0, vec![gap(100)]), (1, vec![gap(900)])]);
    }

    #[test]
    fn klog_9_a_tick_is_what_one_timer_interrupt_takes_from_a_program() {
        let span = |kind, from_ns, to_ns| Span { kind, processor: 1, from_ns, to_ns };
        let spans = [
            span(InterruptKind::Timer, 1_100, 1_500),
            span(InterruptKind::Soft, 1_600, 1_800),
            span(InterruptKind::Timer, 3_100, 3_300),
            span(InterruptKind::Timer, 5_100, 5_200),
            span(InterruptKind::Timer, 5_300, 5_400),
            Span { processor: 0, ..span(InterruptKind::Timer, 3_150, 3_250) },
        ];
        let gap = |from_ns, to_ns| Gap { from_ns, to_ns };
        let gaps = vec![gap(1_000, 2_000), gap(3_000, 3_500), gap(5_000, 6_000), gap(7_000, 9_000)];
        let costs = costs(&spans, &[(1, gaps)]);
        assert_eq!(costs.handler.values(), [200.0, 400.0], "two at once are left out");
        assert_eq!((costs.soft.values(), costs.away.values()), (&[200.0][..], &[500.0, 1_000.0][..]));
    }
}
