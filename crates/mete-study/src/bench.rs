//! `mete bench`: what logging costs here, beside its peers, judged by the project's bars.

use crate::context::Context;
use crate::progress::Progress;
use crate::report::Report;

/// What to measure and how thoroughly.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Measure only groups whose name contains this; see [`groups`].
    pub only: Option<String>,
    /// A sixth of the repetitions: half a minute instead of two or three.
    pub is_quick: bool,
}

type Group = (&'static str, fn(&mut Context<'_>) -> Vec<crate::report::Row>);

const GROUPS: [Group; 2] = [("user", crate::user::rows), ("kernel", crate::kernel::rows)];

/// The groups of measurements, in their order.
pub fn groups() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(name, _)| *name)
}

/// Measures. Takes two to three minutes, half a minute if quick; stops when `progress` says so.
/// What is missing on this machine becomes a row that says so. Nothing stays switched on.
pub fn bench(options: &Options, progress: &mut dyn Progress) -> Report {
    let mut report = Report::new("mete bench");
    let mut context = Context { is_quick: options.is_quick, progress };
    let is_wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    for (_, measure) in GROUPS.iter().filter(|(name, _)| is_wanted(name)) {
        if !context.is_cancelled() {
            report.rows.extend(measure(&mut context));
        }
    }
    report.is_complete = !context.is_cancelled();
    report
}
