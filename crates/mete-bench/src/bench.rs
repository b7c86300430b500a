//! `mete bench`: what logging and deciding cost here, beside its peers, judged by the project's bars.

use mete_base::progress::Progress;
use mete_measure::report::{Report, Row};

use crate::context::{Context, Options};
use crate::{kernel, policy, polling, reader, requests, text, user};

type Group = (&'static str, fn(&mut Context<'_>) -> Vec<Row>);

const GROUPS: [Group; 12] = [
    ("user", user::rows),
    ("parallel", user::parallel_rows),
    ("kernel", kernel::rows),
    ("pipe", kernel::pipe_rows),
    ("size", kernel::size_rows),
    ("sustained", kernel::sustained_rows),
    ("reader", reader::rows),
    ("text", text::rows),
    ("polling", polling::rows),
    ("demo", requests::rows),
    ("floor", requests::floor_rows),
    ("policy", policy::rows),
];

/// The groups of measurements, in their order.
pub fn groups() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(name, _)| *name)
}

/// Measures, and stops when `progress` says so. A measurement that needs something missing on this machine
/// becomes a row that says so. Nothing stays switched on.
pub fn bench(options: &Options, progress: &mut dyn Progress) -> Report {
    let mut report = Report::new("mete bench");
    let mut context = Context { options, progress };
    // After a cancellation the remaining groups have no rows, not even rows that say why.
    for (_, measure) in GROUPS.iter().filter(|(name, _)| options.wants(name)) {
        if !context.is_cancelled() {
            report.rows.extend(measure(&mut context));
        }
    }
    report.is_complete = !context.is_cancelled();
    report
}
