//! The spans of time in which a processor served an interrupt (KLogger paper, §10).

use std::collections::HashMap;

use mete_bench::recording::Recorded;
use mete_trace::NamedItem;

/// The kinds of interrupts, by what causes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InterruptKind {
    /// The processor's own timer.
    Timer,
    /// A device.
    Device,
    /// A soft interrupt.
    Soft,
    /// Another processor.
    Processor,
}

impl InterruptKind {
    /// All kinds.
    pub const ALL: [InterruptKind; 4] =
        [InterruptKind::Timer, InterruptKind::Device, InterruptKind::Soft, InterruptKind::Processor];

    /// The name of the kind, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            InterruptKind::Timer => "timer interrupts",
            InterruptKind::Device => "device interrupts",
            InterruptKind::Soft => "soft interrupts",
            InterruptKind::Processor => "interrupts from other processors",
        }
    }

    /// The kind of interrupt that an event belongs to, and whether the event is its beginning.
    fn of(event: &str) -> Option<(InterruptKind, bool)> {
        let nth = EVENTS.iter().position(|known| *known == event)?;
        // Each kind has two events, first its beginning and then its end, in the order of the kinds.
        Some((InterruptKind::ALL[nth / 2], nth % 2 == 0))
    }
}

/// The events of [`InterruptKind::ALL`]: of each kind its beginning and its end.
pub const EVENTS: [&str; 8] = [
    "TIMER_ENTRY",
    "TIMER_EXIT",
    "IRQ_ENTRY",
    "IRQ_EXIT",
    "SOFTIRQ_ENTRY",
    "SOFTIRQ_EXIT",
    "IPI_ENTRY",
    "IPI_EXIT",
];

/// One interrupt, from its beginning to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The kind of interrupt.
    pub kind: InterruptKind,
    /// Which processor.
    pub processor: u32,
    /// When it began.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
}

impl Span {
    /// How long it took.
    pub fn ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// Pairs beginnings and ends. On one processor, an interrupt may lie within another one, but not within one
/// of its own kind.
#[derive(Debug, Default)]
pub struct Spans {
    open: HashMap<u32, Vec<(InterruptKind, u64)>>,
}

impl Spans {
    /// All interrupts of a recording, in the order of their ends.
    pub fn of(recorded: &Recorded) -> Vec<Span> {
        let (mut spans, mut all) = (Spans::default(), Vec::new());
        recorded.each(|next| all.extend(spans.next(&next)));
        all
    }

    /// Takes the next item of the trace. Returns the interrupt that it ends, if it ends one.
    fn next(&mut self, next: &NamedItem<'_>) -> Option<Span> {
        let seen = match next {
            NamedItem::Lost { processor } => return self.open.remove(processor).and(None),
            NamedItem::Event(seen) => seen,
        };
        let (kind, is_begin) = InterruptKind::of(seen.name())?;
        let open = self.open.entry(seen.processor).or_default();
        if is_begin {
            // An open interrupt of the same kind has lost its end, as can happen where recording begins. It
            // must go, because it could only be paired with an end that belongs to another beginning.
            open.retain(|(of, _)| *of != kind);
            open.push((kind, seen.time_ns));
            return None;
        }
        // An interrupt that began inside of this one and is still open has lost its end.
        let at = open.iter().rposition(|(of, _)| *of == kind)?;
        let from_ns = open[at].1;
        open.truncate(at);
        Some(Span { kind, processor: seen.processor, from_ns, to_ns: seen.time_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::written::Written;

    /// The interrupts of a trace with these events on one processor, the first at 100 ns and 100 ns apart.
    fn spans_of(names: &[&str]) -> Vec<Span> {
        let mut written = Written::new("interrupt", 1);
        for (nth, name) in names.iter().enumerate() {
            written.event(0, 100 * (nth as u64 + 1), name, &[]);
        }
        Spans::of(&written.read())
    }

    fn span(kind: InterruptKind, from_ns: u64, to_ns: u64) -> Span {
        Span { kind, processor: 0, from_ns, to_ns }
    }

    #[test]
    fn klog_9_interrupts_within_interrupts_are_paired() {
        let names = ["SOFTIRQ_ENTRY", "TIMER_ENTRY", "TIMER_EXIT", "SOFTIRQ_EXIT", "IRQ_EXIT", "IPI_ENTRY"];
        assert_eq!(
            spans_of(&names),
            [span(InterruptKind::Timer, 200, 300), span(InterruptKind::Soft, 100, 400)]
        );
    }

    #[test]
    fn klog_9_a_beginning_and_an_end_that_miss_each_other_are_no_interrupt_as_long_as_the_trace() {
        let timers = ["TIMER_ENTRY", "TIMER_ENTRY", "TIMER_EXIT", "TIMER_EXIT"];
        assert_eq!(spans_of(&timers), [span(InterruptKind::Timer, 200, 300)]);
        let others_go_on = ["SOFTIRQ_ENTRY", "TIMER_ENTRY", "TIMER_ENTRY", "TIMER_EXIT", "SOFTIRQ_EXIT"];
        assert_eq!(
            spans_of(&others_go_on),
            [span(InterruptKind::Timer, 300, 400), span(InterruptKind::Soft, 100, 500)]
        );
        assert_eq!(spans_of(&["TIMER_EXIT", "TIMER_EXIT", "TIMER_ENTRY"]), []);
    }

    #[test]
    fn klog_9_the_same_kind_of_interrupt_on_another_processor_stays_open() {
        let mut written = Written::new("interrupt", 2);
        written.event(0, 100, "TIMER_ENTRY", &[]);
        written.event(1, 200, "TIMER_ENTRY", &[]);
        written.event(0, 300, "TIMER_EXIT", &[]);
        written.event(1, 400, "TIMER_EXIT", &[]);
        assert_eq!(
            Spans::of(&written.read()),
            [
                span(InterruptKind::Timer, 100, 300),
                Span { processor: 1, ..span(InterruptKind::Timer, 200, 400) }
            ]
        );
    }
}
