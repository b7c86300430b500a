//! Spans of time that are taken from iterations.

use super::iterations::{AIM_NS, Iteration};
use crate::trace::Span;

/// In a recorded trace, windows of an iteration's length stand for iterations. This is the greatest number of them.
const MOST_WINDOWS: u64 = 10_000_000;

/// The times of these spans without overlap, in order.
pub(super) fn of<'a>(spans: impl IntoIterator<Item = &'a Span>) -> Vec<(u64, u64)> {
    union(spans.into_iter().map(|span| (span.from_ns, span.to_ns)).collect())
}

/// The union of these spans of time as spans without overlap, in order.
pub(super) fn union(mut spans: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
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
pub(super) fn within(taken: &[(u64, u64)], of: Iteration) -> u64 {
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
    fn klog_9_of_a_trace_each_millisecond_says_what_interrupts_took() {
        let taken = union(vec![(2_500_000, 2_600_000), (0, 10_000), (5_000, 20_000), (3_000_000, 3_000_001)]);
        assert_eq!(taken.len(), 3);
        assert_eq!(windows(&taken), [20.0, 0.0, 100.0]);
        assert_eq!(windows(&[]), [0.0; 0]);
    }
}
