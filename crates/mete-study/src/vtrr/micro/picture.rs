//! The picture of who ran when.

use mete_plot::{self as plot, Lane, Span};

use super::schedule::{SHARES, WatchedSchedule};

/// The time that the picture shows, from the beginning of the schedule.
const SHOWN_MS: f64 = 450.0;

pub(super) fn timeline(schedules: &[WatchedSchedule]) -> String {
    let lanes: Vec<_> = schedules.iter().map(lane).collect();
    plot::timeline("Who ran when: shares 1 to 5, quanta of 10 ms", "time, ms", &lanes)
}

fn lane(schedule: &WatchedSchedule) -> Lane {
    Lane {
        name: schedule.policy.into(),
        rows: SHARES.iter().map(|share| format!("share {share}")).collect(),
        spans: (0..SHARES.len()).flat_map(|client| spans(schedule, client)).collect(),
    }
}

fn spans(schedule: &WatchedSchedule, client: usize) -> Vec<Span> {
    let spans = schedule.stretches(client).into_iter().map(|(from, to)| Span {
        row: client,
        from: from.as_millis_f64(),
        to: to.as_millis_f64().min(SHOWN_MS),
    });
    spans.filter(|span| span.from < SHOWN_MS).collect()
}
