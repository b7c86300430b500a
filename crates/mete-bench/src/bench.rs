//! `mete bench`: what logging and deciding cost here, beside its peers, judged by the project's bars.

use std::time::Duration;

use mete_base::progress::Progress;
use mete_demo::Placement;
use mete_measure::report::{Report, Row};

use crate::context::{Context, MakeScheduler};
use crate::{kernel, policy, polling, reader, requests, text, user};

/// What to measure and how thoroughly.
#[derive(Default)]
pub struct Options {
    /// Measure only groups whose name contains this; see [`groups`].
    pub only: Option<String>,
    /// A sixth of the repetitions.
    pub is_quick: bool,
    /// The scheduler whose polling is measured. Without one, a bare reader of the kernel's logs is measured.
    pub scheduler: Option<Box<MakeScheduler>>,
    /// Whether the demo's processes stay on their processors while their requests are counted, with logging and without.
    /// If not given, they are not started, and their rows say so.
    pub request_placement: Option<Placement>,
    /// The longest time for which requests are counted. Counting ends earlier once the cost of logging is known to
    /// within one percent.
    pub requests_for: Option<Duration>,
}

impl Options {
    fn wants(&self, group: &str) -> bool {
        self.only.as_ref().is_none_or(|only| group.contains(only.as_str()))
    }
}

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

/// Measures, and stops when `progress` says so. A measurement that needs something missing on this machine becomes a
/// row that says so. Nothing stays switched on.
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
