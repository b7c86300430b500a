//! What the timer interrupt costs (KLogger paper, §10.2, figure 11).

use std::path::Path;
use std::time::Duration;

use super::cdf::Distribution;
use super::{page, pause, timer_page};
use crate::study::{StudyOptions, StudyResults};
use crate::trace::{InterruptKind, Span, Spans};
use mete_base::progress::Progress;
use mete_bench::crew::Crew;
use mete_bench::recording::{Recorded, Session};
use mete_bench::watch::{self, Gap};
use mete_measure::processor;
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use mete_trace::NamedItem;

const EVENTS: [&str; 4] = ["TIMER_ENTRY", "TIMER_EXIT", "SOFTIRQ_ENTRY", "SOFTIRQ_EXIT"];
/// How long the timer is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_secs(8), Duration::from_secs(1)];

/// The number of gaps that each program keeps. Some hypervisors cause thousands of small gaps in a second.
const GAPS: usize = 1 << 17;

/// The results, in nanoseconds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Costs {
    /// The time from the beginning to the end of the handler.
    pub handler: Distribution,
    /// The time of the soft interrupts that follow the handler at once.
    pub soft: Distribution,
    /// How long the program did not run because of one tick, with recording.
    pub away: Distribution,
    /// Timer interrupts a second on a busy processor.
    pub rate: f64,
    /// Events that the trace has lost.
    pub lost: u64,
}

pub(crate) fn study(options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
    progress.begin("timer interrupts", 1);
    let costs = measure(WATCHED[usize::from(options.is_quick)], progress);
    let mut report = Report::new("mete study timer");
    report.rows = rows(&costs);
    report.is_complete = !progress.is_cancelled();
    timer_page::study(report, costs.as_ref().ok())
}

/// The study of a recorded trace. It has the handler alone, because a trace does not say when the programs ran.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = Recorded::open(directory)?;
    recorded.needs("interrupt", &EVENTS)?;
    let spans = spans(&recorded);
    let handler =
        spans.iter().filter(|span| span.kind == InterruptKind::Timer).map(|span| span.ns() as f64).collect();
    let handler = Distribution::of(handler);
    let mut report = Report::new(format!("mete study timer --trace {}", directory.display()));
    let values = Ok(handler.values().to_vec());
    report.rows.push(Row::new("timer: handler", "ns", values).note(page::loss(recorded.lost())));
    let costs = Costs { handler, ..Costs::default() };
    Ok(timer_page::of_trace(report, &costs))
}

fn measure(time: Duration, progress: &mut dyn Progress) -> Result<Costs, Reason> {
    let places: Vec<_> = processor::allowed().into_iter().map(Some).collect();
    let session = Session::begin("interrupt", &EVENTS)?;
    let switching = Session::begin("scheduler", &["SCHEDOUT"])?;
    let crew = Crew::start(&places, watch::words(GAPS), watch::watch)?;
    crew.go();
    let passed = pause(time, progress);
    crew.stop();
    let (recorded, switched) = (session.end()?, switching.end()?);
    progress.step();
    let gaps: Vec<_> = (0..places.len()).map(|nth| watch::gaps(crew.words(nth))).collect();
    let watched: Vec<_> = places.iter().flatten().map(|&processor| processor as u32).zip(gaps).collect();
    let spans = spans(&recorded);
    let costs = costs(&spans, &undisturbed(watched, &switches(&switched)));
    let ticks = spans.iter().filter(|span| span.kind == InterruptKind::Timer).count() as f64;
    let rate = ticks / passed.as_secs_f64() / places.len() as f64;
    Ok(Costs { rate, lost: recorded.lost(), ..costs })
}

fn spans(recorded: &Recorded) -> Vec<Span> {
    let (mut spans, mut all) = (Spans::default(), Vec::new());
    recorded.each(|next| all.extend(spans.next(&next)));
    all
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

/// The costs of the timer interrupts in those gaps of the programs that contain only soft interrupts in addition.
fn costs(spans: &[Span], watched: &[(u32, Vec<Gap>)]) -> Costs {
    let (mut handler, mut soft, mut away) = (Vec::new(), Vec::new(), Vec::new());
    for (processor, gaps) in watched {
        let own: Vec<&Span> = spans.iter().filter(|span| span.processor == *processor).collect();
        for gap in gaps {
            let within = own.partition_point(|span| span.to_ns < gap.from_ns);
            let within = own[within..].iter().take_while(|span| span.to_ns <= gap.to_ns);
            let (mut timer_ns, mut soft_ns) = (Vec::new(), 0);
            for span in within {
                match span.kind {
                    InterruptKind::Timer => timer_ns.push(span.ns() as f64),
                    _ => soft_ns += span.ns(),
                }
            }
            // A gap with several ticks does not show the cost of one.
            if let [timer_ns] = timer_ns[..] {
                handler.push(timer_ns);
                away.push(gap.ns() as f64);
                if soft_ns > 0 {
                    soft.push(soft_ns as f64);
                }
            }
        }
    }
    let [handler, soft, away] = [handler, soft, away].map(Distribution::of);
    Costs { handler, soft, away, ..Costs::default() }
}

fn rows(costs: &Result<Costs, Reason>) -> Vec<Row> {
    let all = |of: fn(&Costs) -> Vec<f64>| costs.as_ref().map(of).map_err(Clone::clone);
    let loss = costs.as_ref().map_or_else(|_| String::new(), |costs| page::loss(costs.lost));
    vec![
        Row::new("timer: handler", "ns", all(|costs| costs.handler.values().to_vec()))
            .note("from its beginning to its end, on processors that are busy")
            .note(loss),
        Row::new("timer: soft interrupts behind it", "ns", all(|costs| costs.soft.values().to_vec()))
            .note("where there are any"),
        Row::new("timer: program away", "ns", all(|costs| costs.away.values().to_vec()))
            .note("between two readings of the clock, with one timer interrupt and no switch in between"),
        Row::new("timer: interrupts a second", "1/s", all(|costs| vec![costs.rate])),
        Row::new("timer: processor time", "percent", all(timer_page::share)),
    ]
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
