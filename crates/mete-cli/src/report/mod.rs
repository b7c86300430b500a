//! What was logged in an interval, as tables or as JSON.

mod json;
pub mod tables;

use std::time::Duration;

use mete_command::output::Output;
use mete_sched::DomainReport;

pub use mete_sched::interval::{Interval, Logged, Queues, is_idle, service_ns};
pub use mete_sched::other_programs::Program;

/// Prints all results at the end. `interval` is how often the logs were read.
pub fn whole(logged: &Logged, interval: Duration, output: &mut Output) -> anyhow::Result<()> {
    if output.is_json() {
        json::print("whole", logged, output)
    } else {
        tables::whole(logged, interval, output)
    }
}

/// Prints the results of one interval of several.
pub fn part(logged: &Logged, output: &mut Output) -> anyhow::Result<()> {
    if output.is_json() { json::print("interval", logged, output) } else { tables::part(logged, output) }
}

/// The domains, the busiest first, the built-in ones last.
pub fn ordered(logged: &Logged) -> Vec<&DomainReport> {
    let mut domains: Vec<_> = logged.report.domains.iter().collect();
    domains.sort_by_key(|domain| {
        // `None`, for a domain that the user named, comes first.
        (domain.built_in, std::cmp::Reverse(service_ns(domain)))
    });
    domains
}
